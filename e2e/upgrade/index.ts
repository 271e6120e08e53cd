/** The version before this one. */
export { findVersionBefore, type VersionBefore } from './version-before.ts';
