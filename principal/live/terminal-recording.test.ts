import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TerminalStreamData } from '../../lib/wire/index.ts';
import { TerminalSessions, type TerminalUser } from './terminal-sessions.ts';
import { FakeLiveStream } from './testing/fake-stream.ts';

// Needs a terminal recorded between the Go originals, in ../shared/vectors beside the checkout; skipped where it is not.

const file = join(import.meta.dirname, '../../../shared/vectors/terminal.jsonl');
const isThere = existsSync(file);

interface Line {
  readonly dir: string;
  readonly rpc: string;
  readonly bytes?: string;
}

test.skipIf(!isThere)('a recorded agent of the original finds its session, and its output is shown', () => {
  const messages = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
    .filter(
      ({ rpc, dir, bytes }) => rpc.endsWith('/StreamTerminal') && dir === 'agent->principal' && bytes !== undefined,
    )
    .map(({ bytes = '' }) => TerminalStreamData.decode(Buffer.from(bytes, 'base64')));
  expect(messages.length).toBeGreaterThan(5);
  const [{ requestUuid = '' } = {}] = messages;
  const shown: string[] = [];
  const user: TerminalUser = {
    opened: () => undefined,
    message: ({ data, streamType }) => void shown.push(`${streamType} ${data}`),
    lost: () => undefined,
    stopped: () => undefined,
  };
  const sessions = new TerminalSessions();
  sessions.open('agent-managed', requestUuid, user);
  const stream = new FakeLiveStream<TerminalStreamData>('agent-managed');
  const handlers = sessions.serve(stream);
  for (const message of messages) handlers.message(message);
  expect(stream.ended).toBe(false);
  expect(shown[0]).toBe(' ');
  expect(shown.slice(1).every((text) => text.startsWith('stdout '))).toBe(true);
  expect(shown.join('')).toContain('whoami');
});
