import { networkInterfaces } from 'node:os';

/** Whether this machine has the address ::1. Tests of IPv6 cannot run without it. */
export const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);
