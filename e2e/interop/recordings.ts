import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type GoEvent, readEvent } from './go-event.ts';
import { type Fields, readMessage } from './protobuf.ts';
import { messagesOf, methods } from './schemas.ts';

/** Where traffic recorded between a Go principal and Go agents may lie; it is not part of the project. */
const folder = join(import.meta.dirname, '../../../shared/vectors');

/** Whether the recordings are there; tests that need them are skipped where they are not. */
export const hasRecordings = existsSync(folder);

/** Who sends. */
export type Direction = 'agent->principal' | 'principal->agent';

/** A recorded message or end of a call. */
export interface RecordedLine {
  readonly seq: number;
  readonly ms: number;
  /** The principal's process; changes when it is restarted. */
  readonly proc: number;
  readonly call: number;
  readonly dir: Direction;
  readonly rpc: string;
  readonly agent?: string;
  readonly bytes?: string;
  readonly decoded?: Readonly<Record<string, unknown>>;
  readonly status?: { readonly code: string; readonly message: string };
}

/** An event of a recording. */
export interface RecordedEvent {
  readonly line: RecordedLine;
  readonly event: GoEvent;
}

/** The names of all recordings of calls (`app-managed`, ...). */
export function recordingNames(): string[] {
  if (!hasRecordings) {
    return [];
  }
  const files = readdirSync(folder).filter((file) => file.endsWith('.jsonl') && file !== 'headers.jsonl');
  return files.map((file) => file.slice(0, -'.jsonl'.length));
}

/** The lines of a file of JSON lines. */
export function recordedLines<T = RecordedLine>(name: string): T[] {
  const text = readFileSync(join(folder, `${name}.jsonl`), 'utf8');
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
}

/** A JSON file of the recordings. */
export function recordedJson<T>(name: string): T {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as T;
}

/** The bytes of a recorded message. */
export function bytesOf(line: RecordedLine): Buffer {
  if (line.bytes === undefined) {
    throw new Error(`line ${line.seq} has no message`);
  }
  return Buffer.from(line.bytes, 'base64');
}

/** A recorded message, read with the tables of this folder. */
export function messageOfLine(line: RecordedLine): Fields {
  const schema = messagesOf[line.rpc]?.[line.dir];
  if (schema === undefined) {
    throw new Error(`no message is known for ${line.dir} ${line.rpc}`);
  }
  return readMessage(schema, bytesOf(line));
}

/** The events of a recording, all or those of one agent, in the order in which the principal saw or made them. */
export function recordedEvents(name: string, agent?: string): RecordedEvent[] {
  return recordedLines(name)
    .filter((line) => line.rpc === methods.subscribe && line.bytes !== undefined)
    .filter((line) => agent === undefined || line.agent === agent)
    .map((line) => ({ line, event: readEvent(bytesOf(line)) }));
}
