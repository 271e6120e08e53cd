export { type ApiRequest, requestsOf } from './audit.ts';
export { type Conduct, describeRequest, RightsReview, type Workplace } from './programs.ts';
