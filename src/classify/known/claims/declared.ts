import type { Software } from '../software.ts'
import type { AppPart } from './apps.ts'

/** Whether the text is the whole User-Agent of a usual browser, which declares nothing. */
export function isUsual(text: string): boolean {
  return USUAL.test(text)
}

/** What a text says about a program that it does not name. */
export function kindOf(
  text: string,
  app: AppPart,
): 'bot' | 'addressed' | 'odd-mozilla' | 'unknown-product' | 'none' {
  if (text.trim() === '') return 'none'
  if ((app === null && BOT_WORD.test(text)) || CRAWLER_FORM.test(text)) return 'bot'
  if (ADDRESS.test(text)) return app !== null && BOT_WORD.test(text) ? 'bot' : 'addressed'
  return text.startsWith('mozilla/') || text.startsWith('opera/') ? 'odd-mozilla' : 'unknown-product'
}

/** Whether the text says more of itself than the name of an app does. */
export function declaresItself(text: string): boolean {
  return ADDRESS.test(text) || APP_BOT.test(text)
}

/**
 * What a text that names a browser or a tool says about itself besides. Browsers do not call themselves bots,
 * give no address, and are compatible with nothing (Internet Explorer and Konqueror are). Only models of
 * Android devices have such names.
 */
export function declaredIn(
  text: string,
  tool: Software | null,
  browser: Software | null,
  app: AppPart,
): 'bot' | 'addressed' | null {
  if (tool === null && browser === null) return null
  const own = text.includes('android') ? text.replace(ANDROID_DEVICE, '') : text
  if (app === 'client') return ADDRESS.test(own) && BOT_NAME.test(own) ? 'bot' : null
  if (tool !== null) return BOT_NAME.test(own) ? 'bot' : null
  // An app adds its name to that of its web view. Before Android 4.4, that was the system's browser.
  const isOfApp =
    app === 'view' ||
    APP_SYSTEM.test(text) ||
    (text.includes('android') && !ANDROID_BROWSER.test(text)) ||
    browser?.givesWay === 3
  if ((isOfApp ? APP_BOT : BOT_WORD).test(own)) return 'bot'
  const isOfEmbedded = EMBEDDED_IE.test(own)
  if (ADDRESS.test(own) && !isOfEmbedded) return 'addressed'
  if (own.includes('compatible;') && COMPATIBLE.test(own)) return 'bot'
  if (LIKE_GECKO.test(own)) return 'bot'
  if (isOfApp) return isRoleIn(LAST_COMMENT.exec(own)?.[1] ?? '') ? 'bot' : null
  if (
    MAY_BE_DOMAIN.test(own) &&
    DOMAIN.test(own.includes('msie') ? own.replace(IE_COMMENT, '') : own) &&
    !isOfEmbedded
  )
    return 'addressed'
  return isRoleIn(own) ? 'bot' : null
}

function isRoleIn(text: string): boolean {
  return BOT_WORD.test(text) || ROLE_WORD.test(text)
}

/**
 * A browser's name in what no browser sends: markup and code; the User-Agent of a desktop browser behind other
 * text, where phones, televisions and signs have their model; an app's name without the engine of its web view.
 */
export function isForged(text: string, { engine }: Software): boolean {
  if (CODE.test(text) || (engine === 'blink' && FUTURE_MOZILLA.test(text))) return true
  if (text.startsWith('mozilla/') || text.startsWith('opera/')) return false
  if (IE_WITHOUT_START.test(text)) return true
  if (!ENGINE_WORD.test(text)) return engine === 'blink' || engine === 'webkit'
  return DESKTOP_ENGINE.test(text) && !text.includes('qtwebengine')
}

/** Chrome, Edge, Firefox and Safari, on the usual systems. The model of an Android device may be any. */
const USUAL =
  /^mozilla\/5\.0 \((?:windows nt [\d.]+(?:; win64; x64|; wow64)?|macintosh; intel mac os x [\d_.]+|x11; (?:ubuntu; )?linux x86_64|iphone; cpu iphone os [\d_]+ like mac os x|linux; android [\d.]+; [^;)<>$&|,@:]{1,64})(?:; rv:[\d.]+)?\) (?:gecko\/[\d.]+ firefox\/[\d.]+|applewebkit\/[\d.]+ \(khtml, like gecko\) (?:chrome|version)\/[\d.]+ (?:mobile(?:\/\w+)? )?safari\/[\d.]+(?: edga?\/[\d.]+)?)$/
/**
 * Excludes Cubot: no other phone has such a name. An Angebot is an offer in German. Programs that update a
 * system are agents of that system. Masking Agent is an extension.
 */
export const BOT_WORD =
  /(?<!\b(?:cu|ange))bots?\b|crawl|spider|scrap(?:er|y)|slurp|archiver|link-?check|check-?link|(?<!(?:user|update|masking)[ -])\bagent\b/
/** The same, without what tools are also called. Command lines say `ai-agent` if an agent runs them. */
const BOT_NAME = /(?<!\b(?:cu|ange))bot\b|\bai-agent\b|crawler\b|spider\b(?!-)|scraper\b|slurp/
/** The same at the end of a name: `Bot Fighters` is a game. */
const APP_BOT = /(?:(?<!\b(?:cu|ange))bot|\bai-agent|crawler|spider|scraper|slurp)(?= ?[/;,().]| v?\d|$)/
/** `(compatible; Name/1.0; +https://…)`: how crawlers of search engines have introduced themselves since 1996. */
const CRAWLER_FORM = /\bcompatible; ?[^;)]+; ?\+?https?:/
const ADDRESS = /https?:\/\/|\bwww\.|@[a-z0-9-]+\.[a-z]|\bat [a-z0-9-]+(?:\.| dot )[a-z]/
/** Before the next one, which tries every word. */
const MAY_BE_DOMAIN = /\.(?:com|net|org)\b/
/** A web site without scheme. Names of Android packages (`com.example.app`) do not match. */
const DOMAIN = /(?<![.\w@-])[a-z0-9-]{1,63}\.(?:com|net|org)\b(?!\.)/
/** Programs for Windows add their names between those of its parts. */
const IE_COMMENT = /\(compatible; ?msie [^)]*\)?/
/** A component of old Windows programs that shows pages to people. It gives its author's address. */
const EMBEDDED_IE = /\bbsalsa\.com\b/
/** What programs that look at pages call themselves. Of 47,000 User-Agents of people, none has such a word. */
const ROLE_WORD =
  /monitor|screenshot|snapshot|validator|fetch(?:er)?\b|insights?\b|scan(?:ner|s)?\b|thumbnail|lighthouse|check(?:er)?\b|uptime|indexer|favicon|render(?:er)?\b|transcoder|webshot|grabber|harvest|verification|classifier|synthetics?\b|http ?client|preview(?:er)?\b|probe\b|inspect(?:or)?\b|audit(?:or)?\b|parser\b|analy[sz]er\b|extractor\b|collector\b|downloader\b|tester\b|miner\b|\bseo|seo\b|page ?speed|survey|\bresearch|dataset|watchdog|\wagent\b|(?<!-)automat(?:ed|ion)\b|\w-user\b|(?:gpt|llm)\b|roboter|suchmaschine|spinne|rastreador|buscador|indexador|araign|\b(?:ping|pinger|pingdom|ptst|webdriver|phantomjs|browser-use)\b/
/** Behind the name of Safari, where an app has its own name. */
const LAST_COMMENT = /safari\/[\d.]+ \(([^()]*)\)$/
/** `(compatible; Name …)` behind the system, where old browsers do not have it. */
const COMPATIBLE = /^mozilla\/5\.0 \(.*[;(] ?compatible;(?! ?(?:msie|konqueror))/
/** Browsers end it here; bots add their name. */
const LIKE_GECKO = /\(khtml, like gecko ?;/
/** The version and the model of a device. Some phones are called M bot, or Spider. */
const ANDROID_DEVICE =
  /android[^;)]{0,32};(?: ?(?:[a-z]{2}(?:[-_][a-z]{2})?|u|arm\w{0,8}|wv);){0,4}[^;)]{0,128}/
/**
 * Markup and code, which scanners send, a script's list of properties, the name of the header, and a User-Agent
 * behind another text.
 */
const CODE =
  /[,|] ?mozilla\/|<[/!]|<(?:script|style)|\$\{|&(?:lt|quot);|\(select |cookieenabled|^user-agent:|^mozilla\/5\.0 \(.*(?:safari|firefox)\/[\d.]+ mozilla\/5\.0 \(/
/** All browsers since 2000 send 5.0. */
const FUTURE_MOZILLA = /^mozilla\/[6-9]/
/** Internet Explorer begins with Mozilla. Phones with Windows CE have their model before it. */
const IE_WITHOUT_START = /^(?!.*(?:mozilla\/\d\.\d+ ?\(|windows ce)).*\(compatible;[^()]{0,256}\bmsie/
/** Browsers for feature phones name no engine. */
const ENGINE_WORD = /webkit|gecko|browser|u2\/|mozilla/
const DESKTOP_ENGINE = /\((?:windows nt|macintosh|x11)[^)]{0,256}\) (?:applewebkit|gecko)\//
/** Chrome for Android says `mobile safari`, without being an app's web view. */
const APP_SYSTEM = /\bmobile\b(?! safari)|iphone|ipad/
const ANDROID_BROWSER = /android[^)]{0,256}(?<!wv)\) applewebkit\/[\d.]+ \(khtml, like gecko\) chrome\//
