import { boolFlag, type FlagValues, intFlag, stringFlag } from '../../lib/ops/index.ts';

const unused = { usage: 'accepted for compatibility', hidden: true };

/**
 * Flags of argocd-pull-integration's manager that this program's own ones replace, or that have no effect here: it has no
 * webhooks, serves metrics as plain HTTP, and needs no housekeeping at intervals.
 */
export const originalFlags = {
  'zap-log-level': stringFlag({
    ...unused,
    usage: 'use --log-level',
    check: (value) =>
      value === '' || zapLevel(value) !== undefined ? undefined : 'must be debug, info, error, panic or a number',
  }),
  'zap-encoder': stringFlag({
    ...unused,
    usage: 'use --log-format',
    check: (value) => (['', 'json', 'console'].includes(value) ? undefined : 'must be json or console'),
  }),
  'zap-devel': boolFlag({ ...unused, default: true }),
  'zap-stacktrace-level': stringFlag(unused),
  'zap-time-encoding': stringFlag(unused),
  'metrics-secure': boolFlag({ usage: 'accepted for compatibility; metrics are plain HTTP', default: true }),
  'metrics-cert-path': stringFlag(unused),
  'metrics-cert-name': stringFlag({ ...unused, default: 'tls.crt' }),
  'metrics-cert-key': stringFlag({ ...unused, default: 'tls.key' }),
  'webhook-cert-path': stringFlag(unused),
  'webhook-cert-name': stringFlag({ ...unused, default: 'tls.crt' }),
  'webhook-cert-key': stringFlag({ ...unused, default: 'tls.key' }),
  'enable-http2': boolFlag(unused),
  'sync-interval': intFlag({ ...unused, default: 60 }),
};

/** The level and format of the log; argocd-pull-integration's flags count when they are given. */
export function logOptionsOf(
  flags: FlagValues<typeof originalFlags> & { readonly 'log-level': readonly string[]; readonly 'log-format': string },
): { level: readonly string[]; format: string } {
  const level = zapLevel(flags['zap-log-level']);
  const encoder = flags['zap-encoder'];
  return {
    level: level === undefined ? flags['log-level'] : [level],
    format: encoder === '' ? flags['log-format'] : encoder === 'json' ? 'json' : 'text',
  };
}

/** Our level for one of zap: a name, or how detailed the log is, from 1. */
function zapLevel(text: string): string | undefined {
  const names: Readonly<Record<string, string>> = { debug: 'debug', info: 'info', error: 'error', panic: 'fatal' };
  const detail = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : 0;
  return detail > 0 ? (detail === 1 ? 'debug' : 'trace') : Object.hasOwn(names, text) ? names[text] : undefined;
}
