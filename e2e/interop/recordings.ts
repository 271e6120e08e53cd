import { eventLines, messageBytes, type RecordedLine } from '../recordings/index.ts';
import { type GoEvent, readEvent } from './go-event.ts';
import { type Fields, readMessage } from './protobuf.ts';
import { messagesOf } from './schemas.ts';

/** An event of a recording. */
export interface RecordedEvent {
  readonly line: RecordedLine;
  readonly event: GoEvent;
}

/** A recorded message, read with the tables of this folder. */
export function messageOfLine(line: RecordedLine): Fields {
  const schema = messagesOf[line.rpc]?.[line.dir];
  if (schema === undefined) {
    throw new Error(`no message is known for ${line.dir} ${line.rpc}`);
  }
  return readMessage(schema, messageBytes(line));
}

/** The events of a recording, all or those of one agent, in the order in which the principal received or sent them. */
export function recordedEvents(name: string, agent?: string): RecordedEvent[] {
  return eventLines(name)
    .filter((line) => agent === undefined || line.agent === agent)
    .map((line) => ({ line, event: readEvent(messageBytes(line)) }));
}
