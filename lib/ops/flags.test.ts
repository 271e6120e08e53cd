import { describe, expect, test } from 'vitest';
import { boolFlag, durationFlag, intFlag, listFlag, oneOf, parseFlags, stringFlag } from './index.ts';

const flags = {
  namespace: stringFlag({ usage: 'where', default: 'argocd', env: 'X_NAMESPACE', short: 'n' }),
  plain: boolFlag({ usage: 'no TLS', env: 'X_PLAIN' }),
  port: intFlag({
    usage: 'port',
    default: 8443,
    env: 'X_PORT',
    check: (port) => (port < 0 || port > 65535 ? 'port must be between 0 and 65535' : undefined),
  }),
  wait: durationFlag({ usage: 'wait', env: 'X_WAIT' }),
  only: listFlag({ usage: 'list', env: 'X_ONLY', default: ['*'] }),
};
const parse = (args: string[], env: Record<string, string> = {}) => parseFlags(flags, { args, env });

describe('values', () => {
  test('the flag wins over the environment, which wins over the default', () => {
    expect(parse([]).values).toEqual({ namespace: 'argocd', plain: false, port: 8443, wait: 0, only: ['*'] });
    expect(parse([], { X_NAMESPACE: 'a', X_PORT: '0x10', X_PLAIN: 'T', X_WAIT: '1m' }).values).toMatchObject({
      namespace: 'a',
      port: 16,
      plain: true,
      wait: 60_000,
    });
    expect(parse(['--namespace', 'b', '--port=1'], { X_NAMESPACE: 'a', X_PORT: '2' }).values).toMatchObject({
      namespace: 'b',
      port: 1,
    });
  });

  test('an environment variable set to nothing overrides a text default', () => {
    expect(parse([], { X_NAMESPACE: '' }).values.namespace).toBe('');
  });

  test('booleans take a value only after an equals sign', () => {
    expect(parse(['--plain', 'x'])).toMatchObject({ values: { plain: true }, rest: ['x'] });
    expect(parse(['--plain=false'], { X_PLAIN: 'true' }).values.plain).toBe(false);
  });

  test('shorthands, joined or apart', () => {
    for (const args of [['-n', 'a'], ['-na'], ['-n=a']]) {
      expect(parse(args).values.namespace).toBe('a');
    }
  });

  test('lists: the first use replaces the default, later ones append, quotes keep commas', () => {
    expect(parse(['--only', 'a,b', '--only', '"c,d"']).values.only).toEqual(['a', 'b', 'c,d']);
    expect(parse(['--only', 'x'], { X_ONLY: 'a' }).values.only).toEqual(['x']);
    expect(parse([], { X_ONLY: ' a , b' }).values.only).toEqual(['a', 'b']);
  });

  test('a whole name after one dash is a flag too, and a letter with its value stays one', () => {
    expect(parse(['-port', '1', '-only=a']).values).toMatchObject({ port: 1, only: ['a'] });
    expect(() => parse(['-por', '1'])).toThrow("unknown shorthand flag: 'p' in -por");
  });

  test('a double dash ends the flags', () => {
    expect(parse(['--', '--port']).rest).toEqual(['--port']);
  });
});

describe('mistakes', () => {
  test.each([
    [['--prot', '1'], 'unknown flag: --prot (did you mean --port?)'],
    [['--zzz'], 'unknown flag: --zzz'],
    [['-x'], "unknown shorthand flag: 'x' in -x"],
    [['--port'], 'flag needs an argument: --port'],
    [['--port', 'abc'], 'invalid argument "abc" for "--port" flag: must be a whole number'],
    [['--port', '70000'], 'invalid argument "70000" for "--port" flag: port must be between 0 and 65535'],
    [['--plain=yes'], 'invalid argument "yes" for "--plain" flag: must be true or false'],
    [['--wait', '30'], 'invalid argument "30" for "--wait" flag: invalid duration "30" (examples: 300ms, 30s, 1h20m)'],
  ])('%j', (args, message) => expect(() => parse(args)).toThrow(message));

  test('a flag of a feature that is not there is refused by name', () => {
    expect(() => parseFlags(flags, { args: ['--ha-enabled'], env: {}, unsupported: new Set(['ha-enabled']) })).toThrow(
      '--ha-enabled is not supported by this version',
    );
  });

  test('a text in the environment that its flag does not allow is refused, unless the flag is given', () => {
    const mode = stringFlag({ usage: 'mode', default: 'fast', env: 'X_MODE', check: oneOf('fast', 'slow') });
    for (const text of ['Slow', '', 'slow ', 'other']) {
      expect(() => parseFlags({ mode }, { args: [], env: { X_MODE: text } })).toThrow(
        `invalid value ${JSON.stringify(text)} of X_MODE (--mode): must be one of: fast, slow`,
      );
    }
    expect(parseFlags({ mode }, { args: ['--mode=slow'], env: { X_MODE: 'other' } }).values.mode).toBe('slow');
    expect(parseFlags({ mode }, { args: [], env: { X_MODE: 'slow' } }).values.mode).toBe('slow');
  });

  test('a bad environment variable is a warning that names it, and the default is used', () => {
    const { values, warnings } = parse([], { X_PORT: 'abc', X_WAIT: '' });
    expect(values).toMatchObject({ port: 8443, wait: 0 });
    expect(warnings).toEqual([
      expect.stringContaining('X_PORT = "abc" is ignored and the default 8443 is used: must be a whole number'),
      expect.stringContaining('X_WAIT = ""'),
    ]);
  });
});
