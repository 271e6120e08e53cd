import { messageBytes, type RecordedLine, recordedLines } from '../recordings/index.ts';
import { type Fields, readMessage } from './protobuf.ts';
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

/** The recorded answer to a login, its tokens those of this agent and as good as new. */
export function recordedAnswer(clientID: string, now = new Date(), mode = 'managed'): Fields {
  const bytes = firstMessage('connect', ({ rpc, dir }) => rpc === methods.authenticate && dir === 'principal->agent');
  const answer = readMessage(schemas.authResponse, bytes);
  const moved = (token: unknown) => movedToken(String(token), now, { clientID, mode });
  return { ...answer, accessToken: moved(answer.accessToken), refreshToken: moved(answer.refreshToken) };
}
