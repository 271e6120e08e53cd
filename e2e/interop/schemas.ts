import type { Schema } from './protobuf.ts';

// The messages of argocd-agent's gRPC services, as field numbers.

/** `authapi.AuthRequest` */
export const authRequest = {
  method: { number: 1, type: 'string' },
  credentials: { number: 2, type: 'string', map: true },
  mode: { number: 3, type: 'string' },
  version: { number: 4, type: 'string' },
  agentNamespace: { number: 5, type: 'string' },
} as const satisfies Schema;

/** `authapi.AuthResponse` */
export const authResponse = {
  accessToken: { number: 1, type: 'string' },
  refreshToken: { number: 2, type: 'string' },
  version: { number: 3, type: 'string' },
  principalNamespace: { number: 4, type: 'string' },
} as const satisfies Schema;

/** `authapi.RefreshTokenRequest` */
export const refreshTokenRequest = { refreshToken: { number: 1, type: 'string' } } as const satisfies Schema;

/** `versionapi.VersionRequest` */
export const versionRequest = {} as const satisfies Schema;

/** `versionapi.VersionResponse` */
export const versionResponse = { version: { number: 1, type: 'string' } } as const satisfies Schema;

const attributeValue = {
  ceBoolean: { number: 1, type: 'bool', present: true },
  ceInteger: { number: 2, type: 'int32', present: true },
  ceString: { number: 3, type: 'string', present: true },
  ceBytes: { number: 4, type: 'bytes', present: true },
  ceUri: { number: 5, type: 'string', present: true },
  ceUriRef: { number: 6, type: 'string', present: true },
} as const satisfies Schema;

const cloudEvent = {
  id: { number: 1, type: 'string' },
  source: { number: 2, type: 'string' },
  specVersion: { number: 3, type: 'string' },
  type: { number: 4, type: 'string' },
  attributes: { number: 5, type: attributeValue, map: true },
  binaryData: { number: 6, type: 'bytes', present: true },
  textData: { number: 7, type: 'string', present: true },
} as const satisfies Schema;

/** `eventstreamapi.Event` around a CloudEvent. */
export const event = { event: { number: 1, type: cloudEvent, present: true } } as const satisfies Schema;

/** `logstreamapi.LogStreamData` */
export const logStreamDataFields = {
  requestUuid: { number: 1, type: 'string' },
  data: { number: 2, type: 'bytes' },
  eof: { number: 3, type: 'bool' },
  error: { number: 4, type: 'string' },
} as const satisfies Schema;

/** `logstreamapi.LogStreamResponse` */
export const logStreamResponse = {
  requestUuid: { number: 1, type: 'string' },
  status: { number: 2, type: 'int32' },
  error: { number: 3, type: 'string' },
  linesReceived: { number: 4, type: 'int32' },
} as const satisfies Schema;

/** `terminalstreamapi.TerminalStreamData` */
export const terminalStreamData = {
  requestUuid: { number: 1, type: 'string' },
  data: { number: 2, type: 'bytes' },
  streamType: { number: 3, type: 'string' },
  resize: { number: 4, type: 'bool' },
  rows: { number: 5, type: 'uint32' },
  cols: { number: 6, type: 'uint32' },
  eof: { number: 7, type: 'bool' },
  error: { number: 8, type: 'string' },
} as const satisfies Schema;

/** Paths of the methods. */
export const methods = {
  authenticate: '/authapi.Authentication/Authenticate',
  refreshToken: '/authapi.Authentication/RefreshToken',
  version: '/versionapi.Version/Version',
  subscribe: '/eventstreamapi.EventStream/Subscribe',
  streamLogs: '/principal.apis.logstreamapi.LogStreamService/StreamLogs',
  streamTerminal: '/terminalstreamapi.TerminalStreamService/StreamTerminal',
} as const;

/** What a method's messages are, by direction. */
export const messagesOf: Readonly<
  Record<string, { readonly 'agent->principal': Schema; readonly 'principal->agent': Schema }>
> = {
  [methods.authenticate]: { 'agent->principal': authRequest, 'principal->agent': authResponse },
  [methods.refreshToken]: { 'agent->principal': refreshTokenRequest, 'principal->agent': authResponse },
  [methods.version]: { 'agent->principal': versionRequest, 'principal->agent': versionResponse },
  [methods.subscribe]: { 'agent->principal': event, 'principal->agent': event },
  [methods.streamLogs]: { 'agent->principal': logStreamDataFields, 'principal->agent': logStreamResponse },
  [methods.streamTerminal]: { 'agent->principal': terminalStreamData, 'principal->agent': terminalStreamData },
};
