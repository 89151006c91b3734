import assert from 'node:assert/strict'
import { test } from 'tap'
import {
  asciiHint,
  HostMap,
  hostOf,
  hostPatternKey,
  HostSet,
  isAuthority,
  isHostPattern,
} from '../../src/wire/host.ts'

/** An authority, and its host in the form in which hosts are compared. */
const HOSTS: readonly (readonly [authority: string, host: string])[] = [
  ['shop.example', 'shop.example'],
  ['SHOP.Example', 'shop.example'],
  ['shop.example.', 'shop.example'],
  ['shop.example:8443', 'shop.example'],
  ['Shop.Example.:443', 'shop.example'],
  ['shop.example:', 'shop.example'],
  ['localhost', 'localhost'],
  ['a_b.example', 'a_b.example'],
  ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:80', '192.0.2.1'],
  ['[2001:db8::1]', '[2001:db8::1]'],
  ['[2001:DB8::1]:8443', '[2001:db8::1]'],
  ['[2001:0db8:0:0:0:0:0:0001]', '[2001:db8::1]'],
  ['[::FFFF:192.0.2.1]', '192.0.2.1'],
  ['[:::]', '[:::]'],
]

test('each spelling of a host is compared in one form', async () => {
  for (const [authority, host] of HOSTS) {
    assert.ok(isAuthority(authority), authority)
    assert.equal(hostOf(authority), host)
    assert.equal(hostOf(host), host)
  }
})

test('an authority that a reader could cut or decode into another is refused', async () => {
  for (const text of [
    ...['', '.', '..', '.shop.example', 'shop..example', 'shop.example..', ':443', 'shop.example:x'],
    ...['u@shop.example', 'u:p@shop.example', 'shop.example@evil.test', 'shop.example/', 'shop.example?'],
    ...[
      'shop.example#',
      'shop.example\\evil.test',
      'a,b',
      'a b',
      ' a',
      'a ',
      'a\0',
      'a\tb',
      'b\xfccher.example',
    ],
    ...['sho%70.example', '%', 'shop.example:443:443', 'shop.example:123456', 'a:443.', '*', '*.example'],
    ...[
      '[]',
      '[::1',
      '::1',
      '[::1]x',
      '[::1]:x',
      '[shop.example]',
      '[fe80::1%25eth0]',
      'shop.example]',
      '[:]',
    ],
  ])
    assert.ok(!isAuthority(text), text)
})

test('a set holds its hosts in any spelling, and one label in front of a wildcard', async () => {
  const set = new HostSet(['Shop.example.', '*.Shop.example', '192.0.2.1', '[2001:DB8::1]', '*.b.test.'])
  for (const authority of [
    ...[
      'shop.example',
      'SHOP.EXAMPLE.:8443',
      'a.shop.example',
      'A.shop.example.',
      '192.0.2.1:80',
      'x.b.test',
    ],
    ...['[2001:db8:0::1]:1'],
  ])
    assert.ok(set.has(hostOf(authority)), authority)
  for (const authority of [
    ...['example', 'a.b.shop.example', 'evilshop.example', 'shop.example.evil.test', 'b.test', '192.0.2.2'],
    ...['[2001:db8::2]', '*.b.test.evil.test'],
  ])
    assert.ok(!set.has(hostOf(authority)), authority)
  assert.ok(new HostSet([]).isEmpty && !set.isEmpty)
})

test('a host in other letters is shown as requests have it', async () => {
  assert.equal(asciiHint('b\xfccher.example'), ' (write xn--bcher-kva.example)')
  assert.equal(asciiHint('shop.example'), '')
  assert.equal(asciiHint('\xff \xff'), '')
})

test('a pattern is a host name, a wildcard and a host name, or an address as in a Host header', async () => {
  for (const text of [
    ...['shop.example', 'Shop.example.', '*.shop.example', 'localhost', '*.test', '192.0.2.1'],
    ...['[2001:db8::1]', '[::ffff:192.0.2.1]', `${'a'.repeat(63)}.test`],
  ])
    assert.ok(isHostPattern(text), text)
  for (const text of [
    ...[
      '',
      '*',
      '*.',
      '**.a.test',
      'a.*.test',
      '*.*.test',
      '.test',
      'a..test',
      '-a.test',
      'a b',
      'a/b',
      'a:80',
    ],
    ...['2001:db8::1', '[192.0.2.1]', '[fe80::1%eth0]', '[]', '[::1', '[::1]:80', '1.2.3', '192.0.2.256'],
    ...['192.0.2.1:80', 'u@a.test', 'b\xfccher.example', `${'a'.repeat(64)}.test`, 'a.'.repeat(127)],
  ])
    assert.ok(!isHostPattern(text), text)
})

test('patterns that match the same hosts have the same form', async () => {
  assert.equal(hostPatternKey('*.Shop.example.'), '*.shop.example')
  assert.equal(hostPatternKey('[2001:DB8:0::1]'), '[2001:db8::1]')
  assert.notEqual(hostPatternKey('*.shop.example'), hostPatternKey('shop.example'))
})

test('a map prefers the host to the wildcard', async () => {
  const map = new HostMap([
    ['*.a.test', 1],
    ['b.a.test', 2],
    ['*.b.a.test', 3],
  ])
  assert.equal(map.get('b.a.test'), 2)
  assert.equal(map.get('c.a.test'), 1)
  assert.equal(map.get('c.b.a.test'), 3)
  assert.equal(map.get('a.test'), undefined)
})
