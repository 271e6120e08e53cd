import { testHistories } from './testing.ts';

testHistories(5);
