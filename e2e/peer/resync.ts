import { eventTypes, objectEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { type Holding, type Holdings, requestUpdateOf } from './holdings.ts';

/** What a managed agent does with what its principal says: keeps copies, and tells of them when it is asked. */
export interface ManagedAgent {
  readonly holdings: Holdings;
  /** Says a message of a resync. */
  say(type: string, payload: object): void;
  /** Whether it does what an event about an object asks for. Default: always. */
  obeys?(event: WireEvent): boolean;
  /** The principal asked it to tell what it has. */
  asked?(): void;
  /** Something came that makes or changes an object. */
  kept?(holding: Holding, isNew: boolean): void;
  dropped?(holding: Holding): void;
}

/** Takes an event as a managed agent. @throws SyntaxError when its payload is no JSON */
export function followPrincipal(agent: ManagedAgent, event: WireEvent): void {
  const { holdings } = agent;
  if (event.target === targets.resourceResync) {
    if (event.type === eventTypes.requestResourceResync) {
      agent.asked?.();
      for (const holding of holdings.values()) {
        agent.say(eventTypes.requestUpdate, requestUpdateOf(holding));
      }
    } else if (event.type === eventTypes.responseSyncedResource) {
      agent.say(eventTypes.requestUpdate, holdings.answerTo(event));
    }
    return;
  }
  if (agent.obeys?.(event) === false) {
    return;
  }
  if (event.type === eventTypes.create || event.type === eventTypes.specUpdate) {
    const isNew = holdings.find(event) === undefined;
    const holding = holdings.keep(event);
    agent.kept?.(holding, isNew);
  } else if (event.type === eventTypes.delete) {
    const gone = holdings.drop(event);
    if (gone !== undefined) {
      agent.dropped?.(gone);
    }
  }
}

/** What answers a `request-update` about an Application that is not there: its deletion. @throws SyntaxError */
export function deletionOfAbsent(asked: WireEvent, source: string): WireEvent {
  const {
    name = '',
    uid = '',
    namespace = '',
  } = JSON.parse(Buffer.from(asked.data).toString()) as Record<string, string>;
  return objectEvent(targets.application, eventTypes.delete, { metadata: { name, uid, namespace } }, { source });
}
