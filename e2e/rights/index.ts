export { type ApiRequest, requestsOf } from './audit.ts';
export { type Conduct, RightsReview, type Workplace } from './programs.ts';
