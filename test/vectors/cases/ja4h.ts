import type { Bug, Rule } from '../rules.ts'

export interface Ja4hCase {
  readonly name: string
  readonly rule: Rule
  readonly bug?: Bug
  readonly method?: string
  readonly version?: '10' | '11' | '20' | '30'
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Written by hand from the rule's words: the four parts, joined by underscores. */
  readonly r: readonly [a: string, names: string, cookieNames: string, cookiePairs: string]
}

function cookies(
  name: string,
  rule: Rule,
  values: readonly string[],
  names: string,
  pairs: string,
  bug?: Bug,
): Ja4hCase {
  return {
    name: `cookies: ${name}`,
    rule,
    ...(bug && { bug }),
    headers: [['Host', 'a'], ...values.map((value) => ['Cookie', value] as const)],
    r: ['ge11cn010000', 'Host', names, pairs],
  }
}

function language(value: string, mark: string, bug?: Bug): Ja4hCase {
  return {
    name: `language: "${value}"`,
    rule: 'ja4h.language',
    ...(bug && { bug }),
    headers: [['Accept-Language', value]],
    r: [`ge11nn01${mark}`, 'Accept-Language', '', ''],
  }
}

function method(word: string, mark: string, rule: Rule = 'ja4h.method', bug?: Bug): Ja4hCase {
  return {
    name: `method: ${word}`,
    rule,
    ...(bug && { bug }),
    method: word,
    headers: [['Host', 'a']],
    r: [`${mark}11nn010000`, 'Host', '', ''],
  }
}

function many(count: number, mark: string): Ja4hCase {
  const names = Array.from({ length: count }, (_, index) => `X-${index}`)
  return {
    name: `count: ${count} headers, with Cookie and Referer`,
    rule: 'ja4h.count',
    bug: 'count-cap',
    headers: [['Cookie', 'a=1'], ...names.map((name) => [name, ''] as const), ['Referer', '/']],
    r: [`ge11cr${mark}0000`, names.join(','), 'a', 'a=1'],
  }
}

export const JA4H_CASES: readonly Ja4hCase[] = [
  ...[
    'GET ge',
    'POST po',
    'PUT pu',
    'HEAD he',
    'DELETE de',
    'OPTIONS op',
    'PATCH pa',
    'TRACE tr',
    'CONNECT co',
  ].map((row) => method(row.split(' ')[0]!, row.split(' ')[1]!)),
  method('get', 'ge'),
  method('pOsT', 'po'),
  method('M-SEARCH', 'ms', 'ja4h.method.other'),
  method('NOTIFY', 'no', 'ja4h.method.other'),
  method('PROPFIND', 'pf', 'ja4h.method.other'),
  method('PROPPATCH', 'pp', 'ja4h.method.other'),
  method('REPORT', 'rp', 'ja4h.method.other'),
  method('CHECKIN', 'cn', 'ja4h.method.other'),
  method('FOO', 'fo', 'ja4h.method.other'),
  method('X', 'x', 'ja4h.method.other', 'ja4h-short-method'),

  {
    name: 'version: 1.0',
    rule: 'ja4h.version',
    version: '10',
    headers: [['A', '']],
    r: ['ge10nn010000', 'A', '', ''],
  },
  {
    name: 'version: 1.1',
    rule: 'ja4h.version',
    version: '11',
    headers: [['A', '']],
    r: ['ge11nn010000', 'A', '', ''],
  },
  {
    name: 'version: 2',
    rule: 'ja4h.version',
    version: '20',
    headers: [['a', '']],
    r: ['ge20nn010000', 'a', '', ''],
  },
  {
    name: 'version: 3',
    rule: 'ja4h.version',
    version: '30',
    headers: [['a', '']],
    r: ['ge30nn010000', 'a', '', ''],
  },

  {
    name: 'flags: any case',
    rule: 'ja4h.flags',
    bug: 'ja4h-flags',
    headers: [
      ['cOOKIE', 'a=1'],
      ['Host', 'a'],
      ['REFERER', '/'],
    ],
    r: ['ge11cr010000', 'Host', 'a', 'a=1'],
  },
  {
    name: 'flags: names that only begin or end so',
    rule: 'ja4h.flags',
    bug: 'ja4h-flags',
    headers: [
      ['Cookie2', '$Version=1'],
      ['X-Cookie', 'a=1'],
      ['X-Referer', '/'],
      ['Referer-Policy', 'origin'],
      ['Referrer', '/'],
    ],
    r: ['ge11nn050000', 'Cookie2,X-Cookie,X-Referer,Referer-Policy,Referrer', '', ''],
  },
  {
    name: 'flags: empty values',
    rule: 'ja4h.flags',
    headers: [
      ['Cookie', ''],
      ['Referer', ''],
    ],
    r: ['ge11cr000000', '', '', ''],
  },
  {
    name: 'flags: only a referer',
    rule: 'ja4h.flags',
    headers: [
      ['Referer', '/'],
      ['Host', 'a'],
    ],
    r: ['ge11nr010000', 'Host', '', ''],
  },

  {
    name: 'count: duplicates',
    rule: 'ja4h.count',
    headers: [
      ['Accept', '*/*'],
      ['X', ''],
      ['Accept', 'text/html'],
    ],
    r: ['ge11nn030000', 'Accept,X,Accept', '', ''],
  },
  {
    name: 'count: pseudo-headers, wherever they stand',
    rule: 'ja4h.count',
    bug: 'ja4h-pseudo',
    version: '20',
    headers: [
      [':method', 'GET'],
      [':path', '/'],
      ['user-agent', 'x'],
      [':authority', 'a'],
      [':scheme', 'https'],
      ['accept', '*/*'],
    ],
    r: ['ge20nn020000', 'user-agent,accept', '', ''],
  },
  many(98, '98'),
  many(99, '99'),
  many(100, '99'),

  language('en-US,en;q=0.9', 'enus'),
  language('en', 'en00'),
  language('e', 'e000'),
  language('da, en-GB;q=0.8', 'da00'),
  language('en;q=0.5', 'en00'),
  language('zh-Hans-CN', 'zhha', 'ja4h-language'),
  language('i-klingon', 'ikli', 'ja4h-language'),
  language('EN-us', 'enus'),
  language(' en-GB', 'engb', 'ja4h-language'),
  language('e n-g', 'eng0'),
  language('*', '2a00', 'ja4h-language'),
  language('en_US', 'en5f', 'ja4h-language'),
  language('a1b2', 'a31b', 'ja4h-language'),
  language('e*fr', 'e2af'),
  language('abc*', 'abc2'),
  language('@[`{', '405b'),
  language('-', '0000'),
  language('', '0000'),
  language(',en', '0000'),
  language(';q=1', '0000'),
  {
    name: 'language: the first header',
    rule: 'ja4h.language',
    headers: [
      ['accept-language', 'da'],
      ['Accept-Language', 'en'],
    ],
    r: ['ge11nn02da00', 'accept-language,Accept-Language', '', ''],
  },
  {
    name: 'language: the first header, though it is empty',
    rule: 'ja4h.language',
    headers: [
      ['accept-language', ''],
      ['Accept-Language', 'en'],
    ],
    r: ['ge11nn020000', 'accept-language,Accept-Language', '', ''],
  },
  {
    name: 'language: in HTTP/2',
    rule: 'ja4h.language',
    version: '20',
    headers: [['accept-language', 'fr-CH, fr;q=0.9']],
    r: ['ge20nn01frch', 'accept-language', '', ''],
  },

  {
    name: 'names: order and case',
    rule: 'ja4h.names',
    bug: 'ja4h-names',
    headers: [
      ['user-AGENT', 'x'],
      ['Host', 'a'],
      ['ACCEPT', '*/*'],
    ],
    r: ['ge11nn030000', 'user-AGENT,Host,ACCEPT', '', ''],
  },
  {
    name: 'names: none',
    rule: 'ja4h.names',
    bug: 'empty-hash',
    version: '10',
    headers: [],
    r: ['ge10nn000000', '', '', ''],
  },
  {
    name: 'names: values do not matter',
    rule: 'ja4h.names',
    headers: [
      ['X-Empty', ''],
      ['X', 'a,b_c=d;e'],
    ],
    r: ['ge11nn020000', 'X-Empty,X', '', ''],
  },

  cookies('with and without blanks', 'ja4h.cookies', ['b=2;a=1'], 'a,b', 'a=1,b=2'),
  cookies('blanks around', 'ja4h.cookies', [' b=2 ;\t a=1 '], 'a,b', 'a=1,b=2'),
  cookies('empty pieces', 'ja4h.cookies', ['; ;a=1;;'], 'a', 'a=1'),
  cookies('nothing but semicolons', 'ja4h.cookies', ['; ; '], '', '', 'empty-hash'),
  cookies('several headers', 'ja4h.cookies', ['c=3', 'b=2; a=1'], 'a,b,c', 'a=1,b=2,c=3'),
  {
    name: 'cookies: HTTP/2 crumbs, one of them joined',
    rule: 'ja4h.cookies',
    version: '20',
    headers: [
      ['cookie', 'b=2'],
      ['x', ''],
      ['cookie', 'c=3; a=1'],
    ],
    r: ['ge20cn010000', 'x', 'a,b,c', 'a=1,b=2,c=3'],
  },
  cookies(
    'by name, not by pair',
    'ja4h.cookies.order',
    ['v-id=1; v=2; v.x=3'],
    'v,v-id,v.x',
    'v=2,v-id=1,v.x=3',
    'ja4h-cookie-sort',
  ),
  cookies('upper case first', 'ja4h.cookies.order', ['a=1; _=2; B=3'], 'B,_,a', 'B=3,_=2,a=1'),
  cookies('equal names as sent', 'ja4h.cookies.order', ['a=2; b=0; a=1'], 'a,a,b', 'a=2,a=1,b=0'),
  cookies(
    'bytes outside ASCII last',
    'ja4h.cookies.order',
    ['\u00e9=1; \uff5a=2; \u{1f36a}=3; z=4'],
    'z,\u00e9,\uff5a,\u{1f36a}',
    'z=4,\u00e9=1,\uff5a=2,\u{1f36a}=3',
  ),
  cookies('equals signs in the value', 'ja4h.cookies.name', ['a=b=c=='], 'a', 'a=b=c=='),
  cookies('an empty value', 'ja4h.cookies.name', ['a='], 'a', 'a='),
  cookies('no equals sign', 'ja4h.cookies.name', ['b; a=1'], 'a,b', 'a=1,b'),
  cookies('an empty name', 'ja4h.cookies.name', ['=v'], '', '=v'),
  cookies('two empty names', 'ja4h.cookies.name', ['=v;=w'], ',', '=v,=w'),
  {
    name: 'cookies: none',
    rule: 'ja4h.cookies.none',
    bug: 'empty-hash',
    headers: [['Host', 'a']],
    r: ['ge11nn010000', 'Host', '', ''],
  },
]
