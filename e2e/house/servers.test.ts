import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sources } from './imports.ts';

const root = join(import.meta.dirname, '..', '..');
const programs = /^(agent|bin|controller|ctl|lib|principal)\//;

/** Where a server is made, and why it needs no `boundedServer` of `lib/http`. */
const known: Readonly<Record<string, string>> = {
  'lib/http/bounded-server.ts': 'it is the one place',
  'lib/wire/grpc/server/listener.ts': 'limits the connections of agents by address and by whether they have logged in',
  'lib/wire/grpc/server/http1-server.ts': 'gets its connections from that listener, and has limitRequests',
  'principal/live/redis/proxy.ts': 'speaks RESP, and has limitConnections and limitHandshakes',
  'ctl/ha/port-forward.ts': 'listens on the loopback address of an operator for one command',
};

test('every server of the programs has limits: it is a bounded server, or known here', () => {
  const found = [...sources(root)]
    .filter((file) => programs.test(file) && !/\/test(ing|s)\/|[./]test(ing)?\.ts$/.test(file))
    .filter((file) =>
      /\bcreate(Secure)?Server\b|\bcreate(Tcp|Tls)Server\b/.test(readFileSync(join(root, file), 'utf8')),
    );
  expect(found.toSorted()).toEqual(Object.keys(known).toSorted());
});
