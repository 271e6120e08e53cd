import { expect, test } from 'vitest';
import { messageBytes, recordedLines } from '../../../e2e/recordings/index.ts';
import { TerminalStreamData } from '../../../lib/wire/index.ts';
import { FakeLiveStream } from '../testing/fake-stream.ts';
import { TerminalSessions, type TerminalUser } from './terminal-sessions.ts';

test('a recorded agent of the original finds its session, and its output is shown', () => {
  const messages = recordedLines('terminal')
    .filter(
      ({ rpc, dir, bytes }) => rpc.endsWith('/StreamTerminal') && dir === 'agent->principal' && bytes !== undefined,
    )
    .map((line) => TerminalStreamData.decode(messageBytes(line)));
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
  const handlers = stream.servedBy((opened) => sessions.serve(opened));
  for (const message of messages) {
    handlers.message(message);
  }
  expect(stream.ended).toBe(false);
  expect(shown[0]).toBe(' ');
  expect(shown.slice(1).every((text) => text.startsWith('stdout '))).toBe(true);
  expect(shown.join('')).toContain('whoami');
});
