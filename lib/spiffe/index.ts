export { fetchJwtSvid, type JwtSource, jwtSource } from './jwt-source.ts';
export { type SpireSettings, spireFlags, spireSettings } from './settings.ts';
export { trustDomainOf } from './spiffe-id.ts';
export { type X509Source, x509Source } from './x509-source.ts';
