export { type Need, type NeedName, needs } from './needs.ts';
export { reasonsOf, type SkippedTest, skippedTests } from './skipped.ts';
export { needTags } from './tags.ts';
