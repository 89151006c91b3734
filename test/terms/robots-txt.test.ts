import assert from 'node:assert/strict'
import { test } from 'tap'
import { RobotsTxt, targetOf } from '../../src/terms/robots-txt.ts'

/**
 * What RFC 9309 says, and what the test cases that Google publishes for crawlers (google/robotstxt, robotstxt-spec-test)
 * decide: robots.txt, then `token url` with `+` if the crawler may have it and `-` if not.
 */
const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  ['an empty file', '', ['+ Bot http://a.test/x/y', '+ http://a.test/']],
  ['lines', 'user-agent: Bot\ndisallow: /\n', ['- Bot http://a.test/x/y', '+ Other http://a.test/x/y']],
  ['unknown lines', 'foo: Bot\nbar: /\n', ['+ Bot http://a.test/x/y']],
  ['a missing colon', 'user-agent Bot\ndisallow /\n', ['- Bot http://a.test/x/y']],
  ['a missing colon and more words', 'user-agent Bot\ndisallow / please\n', ['+ Bot http://a.test/x/y']],
  [
    'groups, and rules outside of them',
    'allow: /foo/bar/\n\nuser-agent: One\ndisallow: /\nallow: /x/\nuser-agent: Two\ndisallow: /\nallow: /y/\n\n\nallow: /w/\nuser-agent: Three\n\nuser-agent: One\nallow: /z/\ndisallow: /\n',
    [
      ...['+ One http://a.test/x/b', '+ One http://a.test/z/d', '- One http://a.test/y/c'],
      ...['+ Two http://a.test/y/c', '+ Two http://a.test/w/a', '- Two http://a.test/z/d'],
      ...['+ Three http://a.test/z/d', '- One http://a.test/foo/bar/', '- Two http://a.test/foo/bar/'],
      '- Three http://a.test/foo/bar/',
    ],
  ],
  [
    'other lines do not end a group',
    'User-agent: Two\nSitemap: https://a.test/sitemap\nUser-agent: *\nDisallow: /\n',
    ['- One http://a.test/', '- Two http://a.test/'],
  ],
  [
    'nor do unknown ones',
    'User-agent: One\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n',
    ['- One http://a.test/', '- Two http://a.test/'],
  ],
  ...['USER-AGENT: Bot\nALLOW: /x/\nDISALLOW: /\n', 'uSeR-aGeNt: Bot\nAlLoW: /x/\ndIsAlLoW: /\n'].map(
    (robots) => ['case of names', robots, ['+ Bot http://a.test/x/y', '- Bot http://a.test/a/b']] as const,
  ),
  ...['User-Agent: BOT BAR', 'User-Agent: bot bar', 'User-Agent: BoT bAr'].map(
    (line) =>
      [
        'case of tokens, which end at a space',
        `${line}\nAllow: /x/\nDisallow: /\n`,
        ['Bot', 'bot'].flatMap((token) => [`+ ${token} http://a.test/x/y`, `- ${token} http://a.test/a/b`]),
      ] as const,
  ),
  ['a version behind the token', 'User-agent: Bot/1.0\nDisallow: /\n', ['- Bot http://a.test/']],
  ['words behind the star', 'User-agent: * please\nDisallow: /\n', ['- Bot http://a.test/']],
  [
    'the star is for crawlers that no group names',
    'user-agent: *\nallow: /\nuser-agent: Bot\ndisallow: /\n',
    ['- Bot http://a.test/x/y', '+ Other http://a.test/x/y'],
  ],
  [
    'a group of its own, and no star',
    'user-agent: One\nallow: /\nuser-agent: Two\ndisallow: /\nuser-agent: Three\ndisallow: /\n',
    ['+ Four http://a.test/x/y'],
  ],
  ['a group without rules', 'user-agent: *\ndisallow: /\nuser-agent: Bot\n', ['+ Bot http://a.test/x']],
  [
    'case of paths',
    'user-agent: Bot\ndisallow: /X/\n',
    ['+ Bot http://a.test/x/y', '- Bot http://a.test/X/y'],
  ],
  [
    'the longest match',
    'user-agent: Bot\ndisallow: /x/page.html\nallow: /x/\n',
    ['- Bot http://a.test/x/page.html'],
  ],
  [
    'the longest match allows',
    'user-agent: Bot\nallow: /x/page.html\ndisallow: /x/\n',
    ['+ Bot http://a.test/x/page.html', '- Bot http://a.test/x/'],
  ],
  ['empty rules', 'user-agent: Bot\ndisallow: \nallow: \n', ['+ Bot http://a.test/x/page.html']],
  ['equal rules', 'user-agent: Bot\ndisallow: /\nallow: /\n', ['+ Bot http://a.test/x/page.html']],
  [
    'a folder',
    'user-agent: Bot\ndisallow: /x\nallow: /x/\n',
    ['- Bot http://a.test/x', '+ Bot http://a.test/x/'],
  ],
  [
    'a star makes it longer',
    'user-agent: Bot\nallow: /page\ndisallow: /*.html\n',
    ['- Bot http://a.test/page.html', '+ Bot http://a.test/page'],
  ],
  [
    'equally long, or longer',
    'user-agent: Bot\nallow: /x/page.\ndisallow: /*.html\n',
    ['+ Bot http://a.test/x/page.html', '- Bot http://a.test/x/y.html'],
  ],
  [
    'the group of a crawler replaces the star',
    'User-agent: *\nDisallow: /x/\nUser-agent: Bot\nDisallow: /y/\n',
    ['+ Bot http://a.test/x/page', '- Bot http://a.test/y/page'],
  ],
  [
    'queries',
    'User-agent: Bot\nDisallow: /\nAllow: /foo/bar?qux=taz&baz=http://a.test?tar&par\n',
    ['+ Bot http://a.test/foo/bar?qux=taz&baz=http://a.test?tar&par', '- Bot http://a.test/foo/bar'],
  ],
  [
    'characters beyond ASCII',
    'User-agent: Bot\nDisallow: /\nAllow: /foo/bar/ツ\n',
    ['+ Bot http://a.test/foo/bar/%E3%83%84', '- Bot http://a.test/foo/bar/ツ'],
  ],
  [
    'escapes of them',
    'User-agent: Bot\nDisallow: /\nAllow: /foo/bar/%e3%83%84\n',
    ['+ Bot http://a.test/foo/bar/%E3%83%84', '- Bot http://a.test/foo/bar/ツ'],
  ],
  [
    'escapes of plain letters',
    'User-agent: Bot\nDisallow: /\nAllow: /foo/bar/%62%61%7A\n',
    ['- Bot http://a.test/foo/bar/baz', '+ Bot http://a.test/foo/bar/%62%61%7A'],
  ],
  [
    'stars',
    'User-agent: Bot\nDisallow: /foo/bar/quz\nAllow: /foo/*/qux\n',
    [
      '- Bot http://a.test/foo/bar/quz',
      '+ Bot http://a.test/foo/quz',
      '+ Bot http://a.test/foo//quz',
      '+ Bot http://a.test/foo/bax/quz',
    ],
  ],
  [
    'the end',
    'User-agent: Bot\nDisallow: /foo/bar$\nAllow: /foo/bar/qux\n',
    [
      '- Bot http://a.test/foo/bar',
      '+ Bot http://a.test/foo/bar/qux',
      '+ Bot http://a.test/foo/bar/',
      '+ Bot http://a.test/foo/bar/baz',
    ],
  ],
  [
    'comments',
    'User-agent: Bot\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /\n',
    ['+ Bot http://a.test/foo/bar', '- Bot http://a.test/foo/quz'],
  ],
  [
    'the index page is its folder',
    'User-Agent: *\nAllow: /slash/index.html\nDisallow: /\n',
    [
      '+ Bot http://a.test/slash/',
      '- Bot http://a.test/slash/index.htm',
      '+ Bot http://a.test/slash/index.html',
      '- Bot http://a.test/other',
    ],
  ],
  ...['/fish', '/fish*'].map(
    (pattern) =>
      [
        pattern,
        `user-agent: Bot\ndisallow: /\nallow: ${pattern}\n`,
        [
          ...[
            'fish',
            'fish.html',
            'fish/salmon.html',
            'fishheads',
            'fishheads/yummy.html',
            'fish.html?id=anything',
          ].map((path) => `+ Bot http://a.test/${path}`),
          ...['bar', 'Fish.asp', 'catfish', '?id=fish'].map((path) => `- Bot http://a.test/${path}`),
        ],
      ] as const,
  ),
  [
    '/fish/',
    'user-agent: Bot\ndisallow: /\nallow: /fish/\n',
    [
      ...['fish/', 'fish/salmon', 'fish/?salmon', 'fish/salmon.html', 'fish/?id=anything'].map(
        (path) => `+ Bot http://a.test/${path}`,
      ),
      ...['bar', 'fish', 'fish.html', 'Fish/Salmon.html'].map((path) => `- Bot http://a.test/${path}`),
    ],
  ],
  [
    '/*.php',
    'user-agent: Bot\ndisallow: /\nallow: /*.php\n',
    [
      ...[
        'filename.php',
        'folder/filename.php',
        'folder/filename.php?parameters',
        '/folder/any.php.file.html',
        'filename.php/',
        'index?f=filename.php/',
      ].map((path) => `+ Bot http://a.test/${path}`),
      ...['bar', 'php/', 'index?php', 'windows.PHP'].map((path) => `- Bot http://a.test/${path}`),
    ],
  ],
  [
    '/*.php$',
    'user-agent: Bot\ndisallow: /\nallow: /*.php$\n',
    [
      ...['filename.php', 'folder/filename.php'].map((path) => `+ Bot http://a.test/${path}`),
      ...[
        'bar',
        'filename.php?parameters',
        'filename.php/',
        'filename.php5',
        'php/',
        'filename?php',
        'aaaphpaaa',
        '/windows.PHP',
      ].map((path) => `- Bot http://a.test/${path}`),
    ],
  ],
  [
    '/fish*.php',
    'user-agent: Bot\ndisallow: /\nallow: /fish*.php\n',
    [
      '+ Bot http://a.test/fish.php',
      '+ Bot http://a.test/fishheads/catfish.php?parameters',
      '- Bot http://a.test/Fish.PHP',
      '- Bot http://a.test/bar',
    ],
  ],
  ['precedence', 'user-agent: Bot\nallow: /p\ndisallow: /\n', ['+ Bot http://a.test/page']],
  [
    'precedence of equals',
    'user-agent: Bot\nallow: /folder\ndisallow: /folder\n',
    ['+ Bot http://a.test/folder/page'],
  ],
  [
    'precedence of stars',
    'user-agent: Bot\nallow: /page\ndisallow: /*.htm\n',
    ['- Bot http://a.test/page.htm'],
  ],
  [
    'the first page',
    'user-agent: Bot\nallow: /$\ndisallow: /\n',
    ['+ Bot http://a.test/', '- Bot http://a.test/page.html'],
  ],
  ...['\r\n', '\r', '\n'].map(
    (end) =>
      [
        'line ends',
        ['User-Agent: Bot', 'Allow: /some', 'User-Agent: Two', '', '', 'Disallow: /'].join(end),
        ['- Two http://a.test/', '+ Bot http://a.test/'],
      ] as const,
  ),
  ['dissallow', 'user-agent: Bot\ndissallow: /\n', ['- Bot http://a.test/']],
  ['useragent', 'useragent: Bot\ndisalow: /\n', ['- Bot http://a.test/']],
  ['a pattern without a slash', 'user-agent: Bot\ndisallow: x\n', ['+ Bot http://a.test/x']],
  ['robots.txt itself', 'user-agent: *\ndisallow: /\n', ['+ Bot http://a.test/robots.txt']],
]

test('robots.txt is read as RFC 9309 and the published cases of Google have it', async () => {
  for (const [name, robots, expectations] of CASES) {
    for (const expectation of expectations) {
      const [sign, ...rest] = expectation.split(' ')
      const url = rest.pop()!
      const allowed = RobotsTxt.parse(robots).disallowing(rest[0] ?? '', targetOf(url)) === null
      assert.equal(allowed, sign === '+', `${name}: ${expectation}\n${robots}`)
    }
  }
})

test('the start of a file may have a byte order mark, whole or cut off', async () => {
  const text = Buffer.from('User-Agent: bot\nDisallow: /\n')
  for (const [mark, isRead] of [
    [[0xef, 0xbb, 0xbf], true],
    [[0xef, 0xbb], true],
    [[0xef], true],
    [[0xef, 0x11, 0xbf], false],
  ] as const) {
    const robots = RobotsTxt.parse(Buffer.concat([Buffer.from(mark), text]))
    assert.equal(robots.disallowing('bot', '/') !== null, isRead, `${mark}`)
  }
  const late = RobotsTxt.parse(Buffer.from('User-Agent: bot\n\uFEFFDisallow: /\n'))
  assert.equal(late.disallowing('bot', '/'), null)
})

test('a line is cut off at eight times the longest URL of a browser', async () => {
  const path = `/x/${'a'.repeat(2_083 * 8 - 'disallow: /x/'.length - 1)}`
  const robots = RobotsTxt.parse(`user-agent: bot\ndisallow: ${path}/qux\n`)
  assert.equal(robots.disallowing('bot', '/fux'), null)
  assert.notEqual(robots.disallowing('bot', `${path}/fux`), null)
})

test('the target of a URL is its path and query', async () => {
  for (const [url, target] of [
    ['', '/'],
    ['http://www.example.com', '/'],
    ['http://www.example.com/', '/'],
    ['http://www.example.com/a', '/a'],
    ['http://www.example.com/a/', '/a/'],
    ['http://www.example.com/a/b?c=http://d.e/', '/a/b?c=http://d.e/'],
    ['http://www.example.com/a/b?c=d&e=f#fragment', '/a/b?c=d&e=f'],
    ['example.com', '/'],
    ['example.com/a/b?c=d&e=f#fragment', '/a/b?c=d&e=f'],
    ['a', '/'],
    ['a/', '/'],
    ['/a', '/a'],
    ['a/b', '/b'],
    ['example.com?a', '/?a'],
    ['example.com/a;b#c', '/a;b'],
    ['//a/b/c', '/b/c'],
  ] as const)
    assert.equal(targetOf(url), target, url)
})

test('a rule names its line, and other lines keep their group', async () => {
  const robots = RobotsTxt.parse(
    'Sitemap: https://a.test/s.xml\nUser-agent: bot\nCrawl-delay: 5\n\nDisallow: /a # here\nLicense: https://a.test/l\n',
  )
  assert.deepEqual(robots.others, ['Sitemap: https://a.test/s.xml', 'License: https://a.test/l'])
  assert.deepEqual(robots.groups[0]!.others, ['Crawl-delay: 5'])
  const { line, lineNumber } = robots.ruleFor('bot', '/a')!
  assert.deepEqual([line, lineNumber], ['Disallow: /a # here', 5])
})

test('any bytes are a robots.txt', async () => {
  const long = `/${'abcdefg'.repeat(100)}`
  for (const [bytes, isOpen] of [
    [Buffer.alloc(600_000, 0x2a), true],
    [Buffer.from('user-agent: *\n'.repeat(60_000)), true],
    [Buffer.from(`user-agent: *\n${'disallow: /*a*b*c*d*e*f*g\n'.repeat(19_000)}`), false],
    [Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 7_919) % 256)), true],
  ] as const)
    assert.equal(RobotsTxt.parse(bytes).disallowing('bot', long) === null, isOpen)
})
