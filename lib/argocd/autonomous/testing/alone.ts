import type { Application, ApplicationMessage, Message } from '../../index.ts';
import { Lab } from '../../testing/lab.ts';
import { ownApplication, StagePrincipal } from './stage.ts';

let events = 0;
/** A message of a Go agent. */
export function incoming(type: ApplicationMessage['type'], object: Application): Message {
  const { name, uid } = object.metadata;
  const resourceId = `${name}_${uid}`;
  return { target: 'application', type, resourceId, eventId: `${resourceId}_${++events}`, object };
}

/** An agent's Application of this UID. */
export function own(uid: string, rest: Partial<Application> = {}): Application {
  return ownApplication({ uid, resourceVersion: '7' }, rest);
}

/** A principal alone, with the mirror of an Application whose UID is `old`. */
export async function alone(options: ConstructorParameters<typeof StagePrincipal>[1] = {}) {
  const lab = new Lab();
  const principal = new StagePrincipal(lab, options);
  principal.connect();
  principal.receive(incoming('create', own('old')));
  await lab.run();
  return { lab, principal };
}
