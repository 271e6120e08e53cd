/** The version before this one. */
export { checkOut, findVersionBefore, revisionHas, type VersionBefore } from './version-before.ts';
