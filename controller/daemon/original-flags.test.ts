import { expect, test } from 'vitest';
import { parseFlags } from '../../lib/ops/index.ts';
import { daemonFlags } from './flags.ts';
import { logOptionsOf } from './original-flags.ts';

const parse = (...args: string[]) => parseFlags(daemonFlags, { args, env: {} }).values;

test("argocd-pull-integration's manager and its flags, as its manifests and its documentation use them", () => {
  const values = parse(
    '-leader-elect',
    '--metrics-bind-address=127.0.0.1:8080',
    '--metrics-cert-path=/tmp/certs',
    '--webhook-cert-path=/tmp/certs',
    '--sync-interval=30',
    '--zap-devel',
    '--zap-stacktrace-level=error',
    '--zap-time-encoding=iso8601',
  );
  expect(values).toMatchObject({ 'leader-elect': true, 'metrics-bind-address': '127.0.0.1:8080' });
});

test.each([
  [[], ['info'], 'text'],
  [['--log-level=warning', '--log-format=json'], ['warning'], 'json'],
  [['--zap-log-level=debug', '--zap-encoder=json'], ['debug'], 'json'],
  [['--zap-log-level=panic', '--zap-encoder=console'], ['fatal'], 'text'],
  [['--zap-log-level=1'], ['debug'], 'text'],
  [['--zap-log-level=5', '--log-level=error'], ['trace'], 'text'],
])('the log of %j', (args, level, format) => {
  expect(logOptionsOf(parse(...args))).toEqual({ level, format });
});

test.each(['--zap-log-level=loud', '--zap-log-level=0', '--zap-log-level=-1', '--zap-encoder=xml'])(
  '%s is refused',
  (arg) => {
    expect(() => parse(arg)).toThrow('must be');
  },
);
