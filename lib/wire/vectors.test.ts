import { describe, expect, test } from 'vitest';
import {
  eventLines,
  messageBytes,
  type RecordedLine,
  recordedLines,
  recordingNames,
} from '../../e2e/recordings/index.ts';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../proto/gen/authapi/auth.ts';
import type { CloudEvent, CloudEventAttributeValue } from '../../proto/gen/cloudevents/cloudevent.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { LogStreamData, LogStreamResponse } from '../../proto/gen/logstreamapi/logstream.ts';
import { TerminalStreamData } from '../../proto/gen/terminalstreamapi/terminalstream.ts';
import { VersionRequest, VersionResponse } from '../../proto/gen/versionapi/version.ts';
import { specChecksum } from '../argocd/index.ts';
import {
  acknowledgement,
  agentSource,
  decodeEvent,
  encodeEvent,
  eventTypes,
  principalSource,
  targets,
} from './index.ts';

// Every message recorded between a Go principal and Go agents: decoded, compared with what Go saw, encoded again.

interface RecordedEvent {
  readonly type: string;
  readonly id?: string;
  readonly source?: string;
  readonly specVersion: string;
  readonly attributes: Readonly<Record<string, string | { readonly ce_uri: string }>>;
  readonly dataType?: string;
  readonly dataJson?: unknown;
  readonly text?: string;
  readonly dataBase64?: string;
}

function attributesOf(event: CloudEvent): Record<string, unknown> {
  const plain = (value: CloudEventAttributeValue) => value.ceString ?? { ce_uri: value.ceUri };
  return Object.fromEntries(Object.entries(event.attributes).map(([name, value]) => [name, plain(value)]));
}

function checkEvent(bytes: Buffer, recorded: RecordedEvent, line: RecordedLine): void {
  const { event } = Event.decode(bytes);
  if (event === undefined) {
    throw new Error('no event');
  }
  expect(event).toMatchObject({
    type: recorded.type,
    id: recorded.id ?? '',
    source: recorded.source ?? '',
    specVersion: recorded.specVersion,
  });
  expect(attributesOf(event)).toEqual(recorded.attributes);
  if (recorded.dataJson !== undefined) {
    expect(JSON.parse(event.binaryData?.toString() ?? '')).toEqual(recorded.dataJson);
  }

  const decoded = decodeEvent(event);
  expect(decoded.source).toBe(line.dir === 'agent->principal' ? agentSource : principalSource);
  expect(Object.values<string>(targets)).toContain(decoded.target);
  const again = Event.encode({ event: encodeEvent(decoded) }).finish();
  expect(Event.decode(again).event).toEqual(event);
  expect(again.length).toBe(bytes.length);
}

/** What ts-proto gives for a message; the type of the message does not matter here. */
interface Codec {
  decode(bytes: Uint8Array): object;
  encode(message: never): { finish(): Uint8Array };
}

const codecs: Readonly<Record<RecordedLine['dir'], Readonly<Record<string, Codec>>>> = {
  'agent->principal': {
    '/authapi.Authentication/Authenticate': AuthRequest,
    '/authapi.Authentication/RefreshToken': RefreshTokenRequest,
    '/versionapi.Version/Version': VersionRequest,
    '/principal.apis.logstreamapi.LogStreamService/StreamLogs': LogStreamData,
    '/terminalstreamapi.TerminalStreamService/StreamTerminal': TerminalStreamData,
  },
  'principal->agent': {
    '/authapi.Authentication/Authenticate': AuthResponse,
    '/authapi.Authentication/RefreshToken': AuthResponse,
    '/versionapi.Version/Version': VersionResponse,
    '/principal.apis.logstreamapi.LogStreamService/StreamLogs': LogStreamResponse,
    '/terminalstreamapi.TerminalStreamService/StreamTerminal': TerminalStreamData,
  },
};

/** Protobuf JSON leaves out empty fields and writes bytes in base64. */
function plainJson(message: object): Record<string, unknown> {
  const kept = Object.entries(message)
    .map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString('base64') : value] as const)
    .filter(([, value]) => value !== '' && value !== 0 && value !== false && value !== undefined)
    .filter(([, value]) => !(typeof value === 'object' && Object.keys(value).length === 0));
  return Object.fromEntries(kept);
}

function checkMessage(bytes: Buffer, line: RecordedLine): void {
  const codec = codecs[line.dir][line.rpc];
  if (codec === undefined) {
    throw new Error(`no message for ${line.dir} ${line.rpc}`);
  }
  const message = codec.decode(bytes);
  const recorded = Object.entries(line.decoded ?? {}).filter(([name]) => !name.endsWith('Text'));
  expect(plainJson(message)).toEqual(Object.fromEntries(recorded));
  expect(Buffer.from(codec.encode(message as never).finish()).toString('hex')).toBe(bytes.toString('hex'));
}

describe('recorded traffic of the originals', () => {
  test.each(recordingNames())('%s: every message decodes, and encodes to the same meaning', (name) => {
    let checked = 0;
    for (const line of recordedLines(name)) {
      if (line.bytes === undefined) {
        continue;
      }
      const bytes = messageBytes(line);
      try {
        if (line.rpc.startsWith('/eventstreamapi')) {
          checkEvent(bytes, line.decoded as unknown as RecordedEvent, line);
        } else {
          checkMessage(bytes, line);
        }
      } catch (error) {
        throw new Error(`${name}, message ${line.seq}: ${String(error)}`, { cause: error });
      }
      checked++;
    }
    expect(checked).toBeGreaterThan(10);
  });

  test('our acknowledgement of every recorded event is the recorded one', () => {
    let matched = 0;
    for (const name of recordingNames()) {
      const events = new Map<string, ReturnType<typeof decodeEvent>>();
      for (const line of eventLines(name)) {
        const event = decodeEvent(Event.decode(messageBytes(line)).event);
        const id = `${line.agent} ${event.resourceId} ${event.eventId} ${event.extensions.sentat ?? ''}`;
        if (event.type !== eventTypes.processed) {
          events.set(`${line.dir} ${id}`, event);
          continue;
        }
        const acknowledged = events.get(
          `${line.dir === 'agent->principal' ? 'principal->agent' : 'agent->principal'} ${id}`,
        );
        if (acknowledged === undefined) {
          continue;
        }
        expect({ ...acknowledgement(acknowledged, event.source), data: event.data }).toEqual(event);
        matched++;
      }
    }
    expect(matched).toBeGreaterThan(500);
  });

  test('spec checksums in recorded requests are the ones that we compute', () => {
    const requested = new Set<unknown>();
    const computed = new Set<string>();
    for (const line of recordingNames().flatMap(eventLines)) {
      const event = decodeEvent(Event.decode(messageBytes(line)).event);
      if (event.type === eventTypes.requestUpdate) {
        requested.add(JSON.parse(Buffer.from(event.data).toString()).checksum);
      }
      if (event.target !== targets.application || event.data.length === 0) {
        continue;
      }
      const { spec } = JSON.parse(Buffer.from(event.data).toString());
      if (spec !== undefined) {
        computed.add(specChecksum(spec));
      }
    }
    expect([...computed].filter((checksum) => requested.has(checksum))).not.toEqual([]);
  });
});
