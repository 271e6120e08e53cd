import { messageBytes, type RecordedLine, recordedLines } from '../recordings/index.ts';
import { readMessage, writeMessage } from './protobuf.ts';
import * as schemas from './schemas.ts';
import { movedToken } from './tokens.ts';

const { methods } = schemas;

/** The metadata that a transport carried for one direction of an RPC. */
export interface HeaderLine {
  readonly transport: string;
  readonly rpc: string;
  readonly dir: string;
  readonly kind: string;
  readonly compression?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** All recorded metadata. */
export const headerLines = (): HeaderLine[] => recordedLines<HeaderLine>('headers');

/** The first recorded message of an RPC. */
export function firstMessage(name: string, fits: (line: RecordedLine) => boolean): Buffer {
  const line = recordedLines(name).find((each) => each.bytes !== undefined && fits(each));
  if (line === undefined) {
    throw new Error(`nothing of the kind is in ${name}`);
  }
  return messageBytes(line);
}

/** The recorded login of an agent of this mode. */
export const recordedLogin = (mode: string, name = 'connect') =>
  firstMessage(
    name,
    ({ rpc, dir, decoded }) => rpc === methods.authenticate && dir === 'agent->principal' && decoded?.mode === mode,
  );

/** The recorded answer to a login, its tokens as good as new. */
export function recordedAnswer(agent: string, now = new Date()): Buffer {
  const bytes = firstMessage('connect', ({ rpc, dir }) => rpc === methods.authenticate && dir === 'principal->agent');
  const answer = readMessage(schemas.authResponse, bytes);
  const identity = { clientID: agent, mode: 'managed' };
  return writeMessage(schemas.authResponse, {
    ...answer,
    accessToken: movedToken(String(answer.accessToken), now, identity),
    refreshToken: movedToken(String(answer.refreshToken), now, identity),
  });
}
