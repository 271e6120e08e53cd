const prefix = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const name = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Whether Kubernetes takes a text as the key of a label: a name of at most 63 characters, with or without a prefix. */
export function isLabelKey(text: string): boolean {
  const [last = '', domain, ...more] = text.split('/', 3).reverse();
  const isPrefixed = domain === undefined || (domain.length <= 253 && prefix.test(domain));
  return more.length === 0 && isPrefixed && last !== '' && isLabelValue(last);
}

/** Whether Kubernetes takes a text as the value of a label. */
export function isLabelValue(text: string): boolean {
  return text === '' || (text.length <= 63 && name.test(text));
}
