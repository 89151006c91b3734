import { globSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { Guide } from '../../shared/guide.ts'
import { DASHBOARD_FOLDER } from '../../shared/package-files.ts'
import type { RequestContext } from '../http/router.ts'
import { DASHBOARD_PATH } from '../http/dashboard-path.ts'
import { pathIn } from '../http/front/address.ts'
import { beginDocument } from '../http/front/public-document.ts'
import { Refusal } from '../http/refusal.ts'

/**
 * Answers with the files of the dashboard, to any client. The dashboard itself asks the API for its data,
 * with the credential of its user. Any path below it is one of its pages. `false`: not a path of the
 * dashboard.
 */
export function dashboard(folder = DASHBOARD_FOLDER): (ctx: RequestContext) => boolean {
  let files: ReadonlyMap<string, DashboardFile> | null = null
  return (ctx) => {
    const path = pathIn(ctx.req.url!)
    if (path === '/' || path === '/dashboard') {
      beginDocument(ctx)
      ctx.redirect(DASHBOARD_PATH)
      ctx.set(HEADERS) // a redirect has a small page as its body
      return true
    }
    if (!path.startsWith(DASHBOARD_PATH)) return false
    beginDocument(ctx)
    // Read the files at the first request: most processes never get one.
    files ??= new Map([...filesIn(folder), ...guideFiles()])
    say(ctx, fileAt(files, path.slice(DASHBOARD_PATH.length)))
    return true
  }
}

interface DashboardFile {
  readonly bytes: Buffer
  readonly type: string
  /** The name contains a hash of the content, so the file never changes. */
  readonly isForGood: boolean
}

function fileAt(files: ReadonlyMap<string, DashboardFile>, name: string): DashboardFile {
  const file =
    files.get(name) ?? (NO_PAGES.some((folder) => name.startsWith(folder)) ? undefined : files.get(PAGE))
  if (file === undefined)
    throw new Refusal(
      'not_found',
      !files.has(PAGE) ? 'the dashboard is not built: run `npm run build`' : 'file not found',
    )
  return file
}

function say(ctx: RequestContext, { bytes, type, isForGood }: DashboardFile): void {
  ctx.body = bytes
  ctx.set({ 'Content-Type': type, ...HEADERS })
  if (isForGood) ctx.state.freshSeconds = YEAR_S
}

function filesIn(folder: string): ReadonlyMap<string, DashboardFile> {
  const names = globSync('**/*.*', { cwd: folder })
  return new Map(
    names.map((name) => {
      const path = name.replaceAll('\\', '/')
      const type = TYPES[extname(name)] ?? 'application/octet-stream'
      return [path, { bytes: readFileSync(join(folder, name)), type, isForGood: path.startsWith(ASSETS) }]
    }),
  )
}

/** The manual, with a list of its pages and their headings. */
function guideFiles(): ReadonlyMap<string, DashboardFile> {
  const guide = new Guide()
  const pages = guide.pages.map((page) => {
    const { topic, title, about } = page
    return { topic, title, about, headings: guide.headings(page) }
  })
  const file = (text: string, type: string) => ({ bytes: Buffer.from(text), type, isForGood: false })
  return new Map([
    [`${GUIDE}index.json`, file(JSON.stringify({ pages }), 'application/json; charset=utf-8')],
    ...guide.pages.map(
      (page) => [`${GUIDE}${page.topic}.md`, file(guide.text(page), 'text/markdown; charset=utf-8')] as const,
    ),
  ])
}

/**
 * The page loads nothing from other sites, has no inline code and cannot be framed. No text becomes HTML or a
 * script.
 */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
}
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const PAGE = 'index.html'
const ASSETS = 'assets/'
const GUIDE = 'guide/'
const NO_PAGES = [ASSETS, GUIDE]
const YEAR_S = 31_536_000
