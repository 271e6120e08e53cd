export { simulateSeveral as tell } from './simulate-several.ts';
