/** Where the last change of an Application is on its way, from what API servers and Argo CD have written. */
export { type ShownApplication, shownApplications } from './shown-application.ts';
export { type Station, stationsOf, type Way } from './way.ts';
