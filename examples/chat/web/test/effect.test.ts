import { expect, test } from 'vitest';

const SOURCES: Record<string, string> = import.meta.glob('../src/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true });

test('effects are imported from effect.ts, whose type refuses a returned value', () => {
  const others = Object.entries(SOURCES).filter(([path]) => !path.endsWith('/effect.ts'));
  expect(others.length).toBeGreaterThan(10);
  const imported = others.filter(([, text]) => /import[^;]*\buse(Layout|Insertion)?Effect\b[^;]*from 'react'/.test(text));
  expect(imported.map(([path]) => path)).toEqual([]);
});
