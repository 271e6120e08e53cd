export { simulate as tell } from './simulate.ts';
