import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const folder = import.meta.dirname;
const packed = '.jsonl.gz';

/** Who sends. */
export type Direction = 'agent->principal' | 'principal->agent';

/** A recorded message or the end of a call; the README says what the fields are. */
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

const subscribeMethod = '/eventstreamapi.EventStream/Subscribe';

/** The names of all recordings of calls (`app-managed`, ...). */
export function recordingNames(): string[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(packed) && file !== `headers${packed}`);
  return files.map((file) => file.slice(0, -packed.length));
}

/** The lines of a recording, in the order in which the principal received or sent them. */
export function recordedLines<T = RecordedLine>(name: string): T[] {
  const text = gunzipSync(readFileSync(join(folder, `${name}${packed}`))).toString();
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
}

/** A JSON file of the recordings. */
export function recordedJson<T>(name: string): T {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as T;
}

/** The bytes of a recorded message; throws for a line that is the end of a call. */
export function messageBytes(line: RecordedLine): Buffer {
  if (line.bytes === undefined) {
    throw new Error(`line ${line.seq} has no message`);
  }
  return Buffer.from(line.bytes, 'base64');
}

/** The lines of a recording that carry an event, in both directions. */
export const eventLines = (name: string): RecordedLine[] =>
  recordedLines(name).filter((line) => line.rpc === subscribeMethod && line.bytes !== undefined);
