export {
  type Application,
  type ApplicationSpec,
  type ApplicationStatus,
  type AppProject,
  type AppProjectSpec,
  applicationSchema,
  appProjectSchema,
  type Destination,
  type ObjectMeta,
} from './application.ts';
export type {
  ApplicationMessage,
  AppProjectMessage,
  ErrorMessage,
  Message,
  PeerConnection,
  RequestUpdate,
  ResyncKind,
  ResyncMessage,
} from './managed/messages.ts';
