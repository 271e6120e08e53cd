export { type AuthChoice, checkPairing, parseAuth } from './choice.ts';
export { AuthError, type AuthErrorCode } from './errors.ts';
export { headerMethod } from './header.ts';
export {
  type AgentIdentity,
  type AgentMode,
  type AuthRequest,
  type ClientInfo,
  isAgentMode,
  type Login,
} from './identity.ts';
export type { AuthMethod } from './method.ts';
export { mtlsMethod } from './mtls.ts';
export { GoExpression } from './pattern.ts';
export { authenticateWith, checkToken, createAuthMethod } from './registry.ts';
export { commonNameOf, fingerprintOf, subjectOf } from './subject.ts';
export { replacedKeyMs, TokenAuthority, type TokenPair } from './tokens.ts';
export { parseUserDatabase, type UserDatabase, userpassMethod } from './userpass.ts';
