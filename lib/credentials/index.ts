export { certifySockets, type SocketCertificate } from './certify-sockets.ts';
export {
  type CertificateProblem,
  type CertifiedPort,
  type CertifiedSocket,
  type EndUse,
  type Judgement,
  OpenConnections,
} from './open-connections.ts';
