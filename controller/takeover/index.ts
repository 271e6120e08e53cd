export { adopt } from './adopt.ts';
export { release } from './release.ts';
export { forbiddenError, type TakeoverScope } from './steps.ts';
