// Arguments as a person reads and edits them.
import { isObject, type Json, type JsonObject } from './approval';
import { escapeInvisible } from './escape';

/** Whether a browser has, or would have, rounded a number in it. */
export function isRounded(value: unknown): boolean {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  if (Array.isArray(value)) return value.some(isRounded);
  return isObject(value) && Object.values(value).some(isRounded);
}

/** The text a person edits. */
export function toEdit(input: JsonObject): string {
  return JSON.stringify(input, null, 2);
}

/** What a person has written, if it is an object of JSON, or what is wrong with it. */
export function fromEdit(text: string): { input: JsonObject } | { problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `This is not JSON yet: ${escapeInvisible(String((error as Error).message))}` };
  }
  if (!isObject(value)) return { problem: 'Arguments are an object: { "name": value }.' };
  if (isRounded(value)) return { problem: 'A browser would round a number in it.' };
  return { input: value };
}

/** Whether two values are equal, in any order of their names. */
export function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((it, n) => same(it, b[n]));
  if (isObject(a) && isObject(b)) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...names].every(name => Object.hasOwn(a, name) && Object.hasOwn(b, name) && same(a[name], b[name]));
  }
  return a === b;
}

/** How much of a value is shown before it is opened. */
const LINES = 200;
const CHARS = 20_000;

/** A value as it is shown: a text of several lines as its lines, anything else as JSON. */
export function written(value: Json | undefined): string {
  if (typeof value === 'string' && value.includes('\n')) return value;
  return JSON.stringify(value, null, typeof value === 'object' && value !== null ? 2 : 0) ?? '';
}

/** The beginning of a text that is too long to be shown at first, and how much is left out of it. */
export function cut(text: string): { head: string; left: number } | undefined {
  const lines = text.split('\n').slice(0, LINES).join('\n');
  const chars = [...text];
  const most = Math.min([...lines].length, CHARS);
  return most < chars.length ? { head: chars.slice(0, most).join(''), left: chars.length - most } : undefined;
}

/** Whether something of these arguments is left out at first. */
export function isCut(input: JsonObject, repeated: readonly string[] = []): boolean {
  return Object.entries(input).some(([name, value]) => !repeated.includes(name) && cut(written(value)) !== undefined);
}

function short(value: Json, most: number): string {
  const text = JSON.stringify(value);
  const chars = [...text];
  return chars.length <= most ? text : `${chars.slice(0, most).join('')}… (${chars.length - most} more)`;
}

/** Whether a headline shows every argument as it is, and nothing has to stand below it. */
export function saidBy(headline: string, input: JsonObject): boolean {
  return Object.entries(input).every(([name, value]) => !isLong(value) && headline.includes(`${name}: ${JSON.stringify(value)}`));
}

function isLong(value: Json): boolean {
  return (typeof value === 'object' && value !== null) || /[\n\r]/.test(String(value)) || escapeInvisible(String(value)) !== String(value);
}

/** A call on one line. It is elided: the arguments stand whole below it. */
export function headline(name: string, input: unknown): string {
  const args = isObject(input) ? Object.entries(input).map(([key, value]) => `${key}: ${short(value, 60)}`) : [];
  return escapeInvisible(`${name}(${args.join(', ')})`);
}
