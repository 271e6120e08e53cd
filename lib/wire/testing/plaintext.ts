import type { WireServerOptions } from '../server/server-options.ts';

/** Options of a server without TLS on a free port of this machine. */
export const plaintextServer = {
  address: '127.0.0.1',
  port: 0,
  tls: 'plaintext',
  version: '1',
  principalNamespace: 'argocd',
} as const satisfies Partial<WireServerOptions>;
