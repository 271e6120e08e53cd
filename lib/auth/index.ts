export { type AuthChoice, checkPairing, createAuthMethod, parseAuth } from './choice.ts';
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
export type { JudgedSvid, SvidJudge } from './kind.ts';
export type { AuthMethod } from './method.ts';
export { mtlsMethod } from './mtls.ts';
export { GoExpression } from './pattern.ts';
export { authenticateWith, checkToken } from './registry.ts';
export { loginEnd, spiffeJwtMethod, svidAudience } from './spiffe-jwt.ts';
export { commonNameOf, fingerprintOf, subjectOf, urisOf } from './subject.ts';
export { replacedKeyMs, TokenAuthority, type TokenPair } from './tokens.ts';
export { parseUserDatabase, type UserDatabase, userpassMethod } from './userpass.ts';
