export { anyMap, anyValue, edited } from './json.ts';
export { Random } from './random.ts';
