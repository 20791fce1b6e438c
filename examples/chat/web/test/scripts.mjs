// What the scripted assistant of the mock does: per prompt the model's turns, each of texts and calls.
// `policy` is allow, ask, deny or page (the page gives the result).

const call = (tool, input, more = {}) => ({ tool, input, policy: 'allow', result: 'ok', ...more });
const read = path => call('read_file', { path }, { result: `contents of ${path}\nsecond line` });
const remove = (path, more = {}) =>
  call('delete_file', { path }, { policy: 'ask', result: `deleted \`${path}\``, questions: [{ askedBy: 'Changes', reason: `delete ${path}?` }], ...more });

const HOSTILE = {
  path: '<img src=x onerror=alert(1)><script>alert(2)</script>',
  note: 'safe\u202egpj.exe\u2066 \u001b[31mred\u001b[0m zero\u200bwidth \u{e0041}',
  text: '"><iframe src="javascript:alert(3)"></iframe>\nsecond line\u2028third',
  '__proto__x': { onload: '<svg onload=alert(4)>' },
};

export const SCRIPTS = {
  'clean up': [
    [
      'I will look at what is there first.',
      call('list_files', { path: '.' }, { result: { path: '~', entries: [{ name: 'README.md', kind: 'file' }, { name: 'cache.tmp', kind: 'file' }] } }),
      read('notes/todo.txt'),
      read('logs/worker-1.log'),
      call('read_file', { path: '.env' }, { policy: 'deny', reason: '`.env` may hold secrets.' }),
    ],
    [
      'Three files are temporary, and `upload.part` was never finished. I would like to delete them:',
      remove('cache.tmp'),
      remove('tmp/thumb-1.tmp'),
      remove('upload.part', { asked: { path: '~/./upload.part' } }),
      call('write_file', { path: 'SUMMARY.md', text: '# Summary\n\n- deleted the temporary files\n- kept the logs: there are errors in them\n' }, {
        policy: 'ask',
        result: 'wrote 74 bytes to `SUMMARY.md`',
        questions: [{ askedBy: 'Changes', reason: 'write SUMMARY.md?' }],
      }),
    ],
    ['Done.\n\n- the temporary files are as you decided\n- `.env` is as it was\n\n```\n$ ls\nREADME.md  logs  notes\n```'],
  ],
  'delete a.txt': [['I will delete `a.txt`.', remove('a.txt', { again: true })], ['ECHO']],
  two: [[remove('a.txt'), remove('b.txt')], ['ECHO']],
  explode: [[call('explode', {}, { policy: 'ask', error: 'kaboom', questions: [{ askedBy: 'Changes', reason: 'light the fuse?' }] })], ['ECHO']],
  forbidden: [[call('wipe_disk', {}, { policy: 'deny', reason: 'wiping disks is forbidden' })], ['ECHO']],
  'where am i': [['I do not know that.', call('get_location', {}, { policy: 'page' })], ['ECHO']],
  helper: [
    ['I hand this to the cleaner.', call('cleaner', { task: 'remove temporary files' }, { policy: 'agent', result: 'one file is gone' })],
    [remove('cache.tmp', { path: 'root/cleaner/delete_file' })],
    ['ECHO'],
  ],
  hostile: [
    [
      'Watch: <b>not bold</b> <script>alert(0)</script> \u202etxet',
      call('read_file', { path: HOSTILE.path }, { result: `${HOSTILE.note}\n${HOSTILE.text}` }),
      call('write_file', HOSTILE, { policy: 'ask', result: HOSTILE.note + HOSTILE.path, questions: [{ askedBy: 'Changes', reason: 'write \\u{202e}<img src=x onerror=alert(5)>?' }] }),
    ],
    ['ECHO'],
  ],
  slow: [[Array.from({ length: 30 }, (_, n) => `word${n}`).join(' ') + ' end.']],
};
