import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

const entry = new URL('./index.ts', import.meta.url).href;

/** Runs a program whose main function has this body; `act` is called when it has printed its first line. */
async function run(body: string, act?: (kill: (signal: NodeJS.Signals) => void) => void) {
  const script = `import { FatalError, InterruptedError, UsageError, runMain } from ${JSON.stringify(entry)};
    await runMain(async (signal) => { ${body} });`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', script]);
  let [out, error] = ['', ''];
  child.stdout.on('data', (chunk) => {
    out += chunk;
    act?.((signal) => child.kill(signal));
  });
  child.stderr.on('data', (chunk) => {
    error += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, out, error };
}

const untilAborted = `await new Promise((resolve) => { const alive = setInterval(() => undefined, 1000);
  signal.addEventListener('abort', () => { clearInterval(alive); resolve(); }); console.log('ready'); });`;

test('a signal stops the program in order', async () => {
  const { code, out } = await run(`${untilAborted} console.log('bye');`, (kill) => kill('SIGTERM'));
  expect([code, out]).toEqual([0, 'ready\nbye\n']);
});

test('a second signal ends it at once', async () => {
  const { code } = await run(
    `signal.addEventListener('abort', () => console.log('stuck')); console.log('ready');
     await new Promise((resolve) => setInterval(resolve.bind(undefined, undefined), 1_000_000));`,
    (kill) => kill('SIGINT'),
  );
  expect(code).toBe(130);
});

test('errors are told with exit code 1: mistakes and fatal ones without a stack', async () => {
  expect(await run(`throw new FatalError('no key')`)).toMatchObject({ code: 1, error: '[FATAL]: no key\n' });
  expect(await run(`throw new UsageError('unknown flag: --x')`)).toMatchObject({
    code: 1,
    error: 'Error: unknown flag: --x\n',
  });
  expect(
    await run(`throw new FatalError('shows ' + String.fromCharCode(27) + ']0;x' + String.fromCharCode(10) + 'y')`),
  ).toMatchObject({
    error: '[FATAL]: shows \\u001b]0;x\ny\n',
  });
  const bug = await run(`throw new TypeError('bug')`);
  expect(bug.code).toBe(1);
  expect(bug.error).toMatch(/^\[FATAL\]: TypeError: bug\n {4}at /);
});

test('a command that was interrupted says how to go on, with exit code 130', async () => {
  const body = `${untilAborted} throw new InterruptedError('again');`;
  expect(await run(body, (kill) => kill('SIGINT'))).toMatchObject({ code: 130, error: 'again\n' });
});
