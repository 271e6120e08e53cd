export { AuthError, type AuthErrorCode } from './errors.ts';
export {
  type AgentIdentity,
  type AgentMode,
  type AuthRequest,
  isAgentMode,
  isDnsLabel,
  type PeerInfo,
} from './identity.ts';
export type { AuthMethod } from './method.ts';
export { TokenAuthority, type TokenPair, tokenIssuer } from './tokens.ts';
