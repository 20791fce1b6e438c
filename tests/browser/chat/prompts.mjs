// The prompts of the demo's scripted model, and its calls. The server and the scenarios agree on these.

export const PROMPTS = {
  cleanUp: 'clean up',
  one: 'delete a.txt',
  two: 'delete a.txt and b.txt',
  thrice: 'delete a.txt three times',
  moveThrice: 'move a.txt away three times',
  explode: 'move a.txt onto b.txt',
  forbidden: 'read .env',
  location: 'where am i',
  subAgent: 'let the cleaner delete a.txt',
  hostile: 'write something hostile',
  long: 'write a long script and delete a.txt',
  change: 'change todo.txt',
  invoices: 'pay the invoices',
  tooLong: 'write two thousand lines twice',
  reads: 'read everything again and again',
  some: 'read three files and delete a.txt',
  dozen: 'delete twelve files',
  markdown: 'explain it with a table',
  insist: 'insist on deleting a.txt',
  slow: 'tell me a story',
};

/** The one call of `one`, and what it is edited to. */
export const ONE = { tool: 'delete_file', headline: 'delete_file(path: "a.txt")', question: 'deletes a file', edited: { path: 'b.txt' }, ran: '(path: "b.txt")' };
/** The two calls of `two`, in order. */
export const TWO = ['delete_file(path: "a.txt")', 'delete_file(path: "b.txt")'];
/** What the tool of `explode` fails with. */
export const EXPLODE = { tool: 'move_file', error: 'is there already' };
/** What the policy says of `forbidden`. */
export const FORBIDDEN = { tool: 'read_file', reason: 'may hold secrets' };
/** The call of `location`, which the page answers. */
export const LOCATION = { tool: 'get_location' };
/** The call below an agent of `subAgent`. */
export const SUB_AGENT = { agent: 'cleaner', path: 'root/cleaner/delete_file' };
/** The call of `hostile` that waits. */
export const HOSTILE = { tool: 'write_file', shown: ['<img src=x onerror=alert(', '<script>alert(', 'U+202E'] };
/** The call of `long` whose text is left out in the middle at first. */
export const LONG = { tool: 'write_file', hidden: 'rm -rf important' };
/** `slow` streams for some seconds, and ends so. */
export const SLOW = { early: 'word3,', end: 'end.' };
/** `cleanUp` is denied this by policy. */
export const CLEAN_UP = { secret: '.env' };
