import { expect, test } from 'vitest';
import { boolFlag, command, runExecutable, stringFlag, versionCommand, versionInfo } from './index.ts';

const ran: unknown[] = [];
const executable = {
  name: 'tool',
  summary: 'Does things',
  commands: [
    command({
      name: 'go',
      summary: 'Goes',
      flags: {
        place: stringFlag({ usage: 'where to', env: 'TOOL_PLACE', default: 'home', short: 'p' }),
        fast: boolFlag({ usage: 'hurry' }),
      },
      unsupported: { fly: 'TOOL_FLY' },
      run: async (values) => void ran.push(values),
    }),
    command({
      name: 'run',
      summary: 'Runs',
      flags: { fast: boolFlag({ usage: 'hurry' }) },
      ignoresArguments: true,
      run: async (values, { parsed }) => void ran.push({ ...values, warnings: parsed.warnings }),
    }),
    versionCommand('tool'),
  ],
};

async function run(...args: string[]): Promise<string> {
  let out = '';
  await runExecutable(executable, {
    args,
    env: {},
    signal: new AbortController().signal,
    stdout: (text) => {
      out += text;
    },
  });
  return out;
}

test('runs the command that is named, with its values', async () => {
  await run('go', '--place=sea', '--fast');
  expect(ran).toEqual([{ place: 'sea', fast: true }]);
});

test('help lists the commands, and the flags with defaults and environment variables', async () => {
  expect(await run('--help')).toMatch(/Available Commands:\n {2}go {8}Goes\n {2}run {7}Runs\n {2}version/);
  expect(await run('help', 'go')).toBe(
    [
      'Goes',
      '',
      'Usage:',
      '  tool go [flags]',
      '',
      'Flags:',
      '      --fast           hurry',
      '  -h, --help           show this help',
      '  -p, --place string   where to (default "home") [$TOOL_PLACE]',
      '',
    ].join('\n'),
  );
});

test('mistakes come with the usage', async () => {
  await expect(run('stop')).rejects.toThrow(/^unknown command "stop" for "tool"/);
  await expect(run('go', '--fly')).rejects.toThrow(
    /^--fly is not supported by this version\nUsage:\n {2}tool go \[flags\]/,
  );
  await expect(run('go', 'now')).rejects.toThrow(/^unknown argument "now"/);
});

test('a command of the originals ignores arguments that are no flags, with a warning', async () => {
  await run('run', '--fast', 'false', 'now');
  expect(ran.at(-1)).toEqual({
    fast: true,
    warnings: [
      'arguments that are no flags are ignored: "false", "now"; a flag without a value is set to false with --name=false',
    ],
  });
});

test('version in every format of the originals', async () => {
  const { version } = versionInfo('tool');
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect(await run('version')).toBe(`tool-${version}\n`);
  expect(await run('--version')).toBe(`tool-${version}\n`);
  expect(await run('version', 'please')).toBe(`tool-${version}\n`);
  expect(await run('version', '--short', '-o', 'json')).toBe(`${version}\n`);
  const info = JSON.parse(await run('version', '-o', 'json'));
  expect(info).toMatchObject({ name: 'tool', version });
  expect(Object.keys(info)).toEqual([
    'name',
    'version',
    'gitRevision',
    'gitStatus',
    'goVersion',
    'buildDate',
    'argocdVersion',
  ]);
  expect(await run('version', '-o', 'yaml')).toContain(`version: ${version}\n`);
});
