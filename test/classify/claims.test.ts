import assert from 'node:assert/strict'
import { test } from 'tap'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'

const { userAgents } = await loadKnowledge(null, null)

const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0'
const WINDOWS = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36`
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0'
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148'
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)'
const ANDROID = `Mozilla/5.0 (Linux; Android 15; Pixel 9 Build/AP4A.250105.002; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/156.0.7700.10 Mobile Safari/537.36`

test('the web view of an app is a browser, whatever the app is called', async () => {
  const apps = [
    ' SpiderSolitaire/2.1',
    ' Crawling/3',
    ' Compass Agent/7.2',
    ' LinkChecker/1',
    ' Archiver/5',
    '',
    ' Slack/24.10.30',
    ' [Teams]',
    ' Reddit/2025.1',
    ' AcmeBank/7.1 (iOS; build 4)',
    ' Acme/1',
  ]
  for (const view of [IPHONE, MAC, ANDROID])
    for (const app of apps) {
      const claim = userAgents.claim(`${view}${app}`)
      assert.equal(claim.kind, 'browser', `${view}${app}`)
      assert.equal(claim.engine, view === ANDROID ? 'blink' : 'webkit')
      assert.ok(claim.isEmbedded)
      assert.ok(!claim.hasForeignTls)
    }
  assert.equal(userAgents.claim(IPHONE).version, 18)
  assert.equal(userAgents.claim(IPHONE).platform, 'ios')
})

test('on iOS every browser has the engine of the system', async () => {
  for (const app of [
    ' Instagram 400.0.0',
    ' CriOS/146.0',
    ' FxiOS/153.0',
    ' EdgiOS/146.0',
    ' GSA/400.0',
    ' AlipayClient/10',
  ])
    assert.equal(userAgents.claim(`${IPHONE}${app}`).engine, 'webkit', app)
})

test('an app that fetches without a web view is a tool', async () => {
  for (const text of [
    'Acme/12 CFNetwork/3860.100.1 Darwin/25.0.0',
    'MobileSafari/9537.53 CFNetwork/672.1.13 Darwin/13.1.0',
  ])
    assert.equal(userAgents.claim(text).kind, 'tool', text)
})

test('a bot is a bot, whatever browser it embeds', async () => {
  for (const text of [
    `Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; FooBot/1.0; +http://foo.example/bot) Chrome/156.0.0.0 Safari/537.36`,
    `Mozilla/5.0 (compatible; FooBot/1.0; +http://foo.example) ${CHROME} Safari/537.36`,
    `${WINDOWS} FooBot/1.0`,
    `${WINDOWS} (compatible; Foo/1.0)`,
    `${WINDOWS} foo-crawler`,
    `${WINDOWS} FooSpider/2`,
    `${WINDOWS} AcmeMonitor/3`,
    `${WINDOWS} Acme Screenshot`,
    `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; Acme Quality) Chrome/156.0.0.0 Safari/537.36`,
    `Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) ${CHROME} Mobile Safari/537.36 (compatible; FooBot/2.1)`,
    `Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P; FooBot/2.1) ${CHROME} Mobile Safari/537.36`,
    `${IPHONE} (compatible; foobot/1.0)`,
    `${FIREFOX} FooBot/1.0`,
    'python-requests/2.32 FooBot/1.0',
    'curl/8.5 (ai-agent foo-code)',
    'foo-cli/2.38.1 (os: darwin) AI-Agent (name: foo-code, entry: cli)',
    'Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Foobot)',
    `Mozilla/5.0 (Linux; Android 15; Pixel 9) ${CHROME} Mobile Safari/537.36 Foo-Optimizer-Agent`,
    `Mozilla/5.0 (Linux; Android 15; Pixel 9) ${CHROME} Mobile Safari/537.36 FooSynthetics/3`,
    `${WINDOWS} FooClassifier/1.0`,
  ]) {
    const { kind, software, engine } = userAgents.claim(text)
    assert.equal(kind, 'bot', text)
    assert.notEqual(software?.kind, 'browser', text)
    assert.equal(engine, null)
  }
})

test('a crawler is known by the form in which it introduces itself', async () => {
  for (const text of [
    'Mozilla/5.0 (compatible; Foo/1.0; +https://foo.example/about)',
    'Mozilla/5.0 (compatible; FooImages/3.0; http://foo.example/bots)',
    'Foo/1.0 (compatible; Foo; +http://foo.example)',
    'Foo/1.0 (one of the bots of Foo)',
  ])
    assert.equal(userAgents.claim(text).kind, 'bot', text)
})

test('a program that updates a system, and a header that names itself, are not bots', async () => {
  for (const text of [
    'Windows-Update-Agent/10.0.10011.16384 Client-Protocol/2.32',
    'Foo Self-Update Agent',
    'Nokia 6300-USER AGENT',
    'MB200 Build/1 User Agent:MB200',
  ])
    assert.equal(userAgents.claim(text).kind, 'unknown-product', text)
})

test('an app that talks to its own server is neither a browser nor an agent', async () => {
  for (const text of [
    'WhatsApp/2.18.79 Android/5.1 Device/Meizu-MX5',
    'WhatsApp/2.6.4 iPhone_OS/4.3.3 Device/iPhone_4',
    'Snapchat/12.52.0.46 (iPhone14,7; iOS 17.0.1; gzip)',
    'Instagram 5.0.2 Android (15/4.0.4; 240dpi; 480x800; Acme; A1; A1; qcom; es_ES)',
  ])
    assert.equal(userAgents.claim(text).kind, 'unknown-product', text)
  for (const preview of ['WhatsApp/2.23.20.0 A', 'WhatsApp/2.19.92 i', 'Viber'])
    assert.equal(userAgents.claim(preview).kind, 'agent', preview)
  for (const app of [`${ANDROID} Viber/11.9.5.8`, `${ANDROID} Snapchat/12.79.0.32`])
    assert.equal(userAgents.claim(app).kind, 'browser', app)
})

test('a desktop browser sends nothing before its User-Agent, and no code in it', async () => {
  for (const text of [
    `FooEU/1.0 ${WINDOWS}`,
    `Google Chrome - ${WINDOWS}`,
    `Anonymous, ${FIREFOX}`,
    `Foo/6.7.5, Mozilla/5.0 (Linux; Android 15; Pixel 9) ${CHROME} Mobile Safari/537.36`,
    `foohttp5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36`,
    'Google Chrome/120.0.6099.72 Windows',
    `<style>${WINDOWS}`,
    `${WINDOWS}'+(select load_file('x'))+'`,
    `${FIREFOX} \${jndi:ldap://x}`,
  ])
    assert.notEqual(userAgents.claim(text).kind, 'browser', text)
  for (const text of [
    'BrightSign/9.0.109 (LS445) Mozilla/5.0 (X11; Linux aarch64) AppleWebKit/537.36 (KHTML, like Gecko) QtWebEngine/5.15.2 Chrome/87.0.4280.144 Safari/537.36',
    'SonyEricssonU1i/R1CA; Mozilla/5.0 (SymbianOS/9.4; U; Series60/5.0 Profile/MIDP-2.1 Configuration/CLDC-1.1) AppleWebKit/525 (KHTML, like Gecko) Version/3.0 Safari/525',
    `Acme Jobs/24.4.0 ${ANDROID}`,
  ])
    assert.equal(userAgents.claim(text).kind, 'browser', text)
})

test('a User-Agent with an address is not that of a person', async () => {
  for (const text of [
    `${WINDOWS} Acme/1.0 (+https://acme.example)`,
    `${WINDOWS} (www.acme.example)`,
    `${WINDOWS} Acme (ops@acme.example)`,
    `${WINDOWS} acme.com`,
    `${FIREFOX} (ops at acme dot example)`,
  ])
    assert.equal(userAgents.claim(text).kind, 'addressed', text)
})

test('a tool is called a bot only if it says that word', async () => {
  for (const [text, kind] of [
    ['okhttp/4.12 Acme Agent/7', 'tool'],
    ['curl/8.5 spider-man', 'tool'],
    ['python-requests/2.32 acme-crawler/1', 'bot'],
  ] as const)
    assert.equal(userAgents.claim(text).kind, kind, text)
})

test('a device, an app or an old component with such a name is a browser', async () => {
  for (const text of [
    `Mozilla/5.0 (Linux; Android 7.0; M bot 54) ${CHROME} Mobile Safari/537.36`,
    `Mozilla/5.0 (Linux; Android 7.0; ID bot 53+ Build/NRD90M) ${CHROME} Mobile Safari/537.36`,
    `Mozilla/5.0 (Linux; U; Android 8.1.0; en-us; XBot Junior Build/1) ${CHROME} Mobile Safari/537.36`,
    `Mozilla/5.0 (Linux; arm_64; Android 13; Spider 8) ${CHROME} Safari/537.36`,
    `Mozilla/5.0 (Linux; Android 13; CUBOT KINGKONG) ${CHROME} Mobile Safari/537.36`,
    `${ANDROID} CamScanner/6.27.0`,
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) PriceMonitor/1.0 Chrome/156.0.0.0 Electron/44.0.0 Safari/537.36`,
    `${IPHONE} PriceMonitor/2`,
    `${ANDROID} [com.example.shop/1.0]`,
    `${WINDOWS} [com.example.shop/1.0]`,
    'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; Embedded Web Browser from: http://bsalsa.com/; .NET CLR 2.0)',
    'Mozilla/5.0 (compatible; Konqueror/4.5; Linux) KHTML/4.5.4 (like Gecko)',
  ])
    assert.equal(userAgents.claim(text).kind, 'browser', text)
})

test('the view of an app is a browser, even if the servers of its vendor are known as an agent', async () => {
  for (const view of [IPHONE, MAC, ANDROID])
    for (const app of [
      'Feedly/90.1',
      'NetNewsWire/6.1',
      'WhatsApp/25.1',
      'Bot Fighters/1.3',
      'Chatbot App/2',
    ])
      assert.equal(userAgents.claim(`${view} ${app}`).kind, 'browser', `${view} ${app}`)
  assert.equal(
    userAgents.claim(
      `${MAC.replace('605.1.15', '537.36')} PocketCasts/2 Chrome/144.0 Electron/40 Safari/537.36`,
    ).kind,
    'browser',
  )
  for (const text of [
    `${IPHONE} BrandVerity/1.0 (http://www.brandverity.com/why-is-brandverity-visiting-me)`,
    `Mozilla/5.0 (Windows NT 10.0) ${CHROME} Electron/7.3.2 Safari/537.36 PingdomTMS/2020.2`,
  ])
    assert.equal(userAgents.claim(text).kind, 'agent', text)
  assert.equal(userAgents.claim(`${IPHONE} FooBot/1.0`).kind, 'bot')
})

test('the name of an app on a phone or a Mac does not make it an agent', async () => {
  for (const system of [
    'CFNetwork/1494.0.7 Darwin/23.4.0',
    '(iPhone; iOS 18.6; Scale/3.00)',
    '(com.acme.app; build:12; iOS 18.6.0) Alamofire/5.9.1',
    'Dalvik/2.1.0 (Linux; U; Android 14; SM-S928B Build/UP1A)',
    '(Android 14; SM-S928B) okhttp/4.12.0',
  ])
    for (const app of ['Tweetbot/53300', 'SpiderSolitaire/1', 'Feedly/90', 'WhatsApp/2.25']) {
      const { kind } = userAgents.claim(`${app} ${system}`)
      assert.ok(kind === 'tool' || kind === 'unknown-product', `${app} ${system}: ${kind}`)
    }
  for (const text of ['NewsBlur iPad App v3.0', 'NewsBlur Android App'])
    assert.equal(userAgents.claim(text).kind, 'unknown-product', text)
  for (const text of [
    'FooBot/1.0 (+https://foo.example/bot) CFNetwork/1494.0.7 Darwin/23.4.0',
    'FooBot/1.0 (Linux; Android 14; +https://foo.example/bot)',
  ])
    assert.equal(userAgents.claim(text).kind, 'bot', text)
})

test('behind a browser of a desktop, the word for what a program does is a bot', async () => {
  const words =
    'FooFetch FooAudit/1.0 FooScan/1 foo-check/1.0 FooInspect/1 FooProbe/2 FooParser/1 FooAnalyzer FooSEO/1 FooAgent/1.0'
  for (const word of [...words.split(' '), 'Foo Security Scan', 'Foo-User/1.0', 'Suchroboter', 'PhantomJS'])
    for (const text of [
      `${WINDOWS} ${word}`,
      `${WINDOWS} (${word})`,
      `${FIREFOX} ${word}`,
      `${MAC} Version/18.0 Safari/605.1.15 (${word})`,
      `${IPHONE.replace('Mobile', 'Version/18.6 Mobile')} Safari/604.1 (${word})`,
    ])
      assert.equal(userAgents.claim(text).kind, 'bot', text)
  assert.equal(userAgents.claim(`${WINDOWS} Presearch (Tempest)`).kind, 'browser')
})

test('Internet Explorer begins with Mozilla, and other programs add their names to it', async () => {
  for (const text of [
    'Foo 4 (compatible; MSIE 6.0; Windows NT 5.0)',
    'Foo/2.0 (compatible; Mozilla 4.0; MSIE 5.5)',
  ])
    assert.notEqual(userAgents.claim(text).kind, 'browser', text)
  for (const text of [
    'SAMSUNG-GT-i8000/1.0 (compatible; MSIE 6.0; Windows CE; IEMobile 8.12; MSIEMobile 6.0)',
    'Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; TheFreeDictionary.com; .NET CLR 1.1.4322)',
    'Mozilla/4.0 (compatible; MSIE 7.0; EmbeddedWB 14.52 from: http://www.bsalsa.com/ EmbeddedWB 14.52; SLCC2)',
  ])
    assert.equal(userAgents.claim(text).kind, 'browser', text)
})
