import { expect, test } from 'vitest';
import { bracketed, hostPort, listenHost, networkOf, plainAddress, splitHostPort, withoutBrackets } from './index.ts';

test('a host and its port, with brackets around an IPv6 address', () => {
  expect(hostPort('redis', 6379)).toBe('redis:6379');
  expect(hostPort('10.0.0.1', 80)).toBe('10.0.0.1:80');
  expect(hostPort('fd00::1', 443)).toBe('[fd00::1]:443');
  expect(hostPort('[fd00::1]', 443)).toBe('[fd00::1]:443');
  expect(bracketed('::1')).toBe('[::1]');
  expect(withoutBrackets('[::1]')).toBe('::1');
  expect(withoutBrackets('[redis]')).toBe('[redis]');
});

test('host:port is split, an IPv6 address only with brackets', () => {
  expect(splitHostPort(':9090')).toEqual({ host: '', port: 9090 });
  expect(splitHostPort('0.0.0.0:1')).toEqual({ host: '0.0.0.0', port: 1 });
  expect(splitHostPort('[::]:6379')).toEqual({ host: '::', port: 6379 });
  for (const wrong of ['::1:80', 'host', 'host:', 'host:70000', '[host]:1', '[::1', '[::1]', 'a:b:1', '[]:1']) {
    expect(splitHostPort(wrong), wrong).toBeUndefined();
  }
});

test('empty, 0.0.0.0 and :: listen on all addresses', () => {
  expect(['', '0.0.0.0', '::', '[::]'].map(listenHost)).toEqual(Array(4).fill(undefined));
  expect(listenHost('127.0.0.1')).toBe('127.0.0.1');
  expect(listenHost('[::1]')).toBe('::1');
});

test('an IPv4 address is the same, whatever the listener', () => {
  expect(plainAddress('::ffff:10.1.2.3')).toBe('10.1.2.3');
  expect(networkOf('::ffff:10.1.2.3')).toBe('10.1.2.3');
  expect(networkOf('10.1.2.3')).toBe('10.1.2.3');
});

test('the network of an IPv6 address is its first half', () => {
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2');
  expect(networkOf('[2001:db8:1:2::6]')).toBe('2001:db8:1:2');
  expect(networkOf('2001:db8::5')).toBe('2001:db8:0:0');
  expect(networkOf('::1')).toBe('0:0:0:0');
  expect(networkOf('unknown')).toBe('unknown');
});
