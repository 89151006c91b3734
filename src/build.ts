import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

/**
 * Used by `npm run build`: bundles the program into a few files instead of two thousand. Finding, opening and
 * linking each file took half of a proxy's start time. The output is CommonJS: an import of a Node module
 * evaluates all of its exports, which loads unused parts of Node.
 *
 * Code that starts another program or reads a file relative to its own location still works: all files are in
 * one folder of dist/, at the same depth as in src/.
 */
async function build(): Promise<void> {
  const bundle = await rolldown({
    input: {
      bin: 'src/bin.js',
      'worker-process': 'src/proxy/worker/worker-process.ts',
      'signature-process': 'src/runtime/signatures/signature-process.ts',
      'client-process': 'src/commands/demo/client-process.ts',
      'feed-process': 'src/manage/publish/feed-process.ts',
      'capture-process': 'src/manage/judging/capture-process.ts',
    },
    platform: 'node',
    // The first contains machine code, pg probes for the second, and the third exists in a checkout only.
    external: ['better-sqlite3', 'pg-native', '@ai-sdk/mcp'],
    // Warnings caused by packages, and a warning about `help`, whose importer has already loaded it.
    checks: { eval: false, ineffectiveDynamicImport: false },
  })
  const { output } = await bundle.write({
    dir: DIST,
    format: 'cjs',
    entryFileNames: ({ name }) => (name === 'bin' ? 'bin.js' : 'app/[name].js'),
    chunkFileNames: 'app/[name]-[hash].js',
  })
  const modules = output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []))
  await writeFile(join(DIST, 'package.json'), '{ "type": "commonjs" }\n')
  await writeFile(join(DIST, 'LICENSES'), licencesOf(modules))
}

/** The licences of the bundled packages, which require that they are passed on. */
function licencesOf(modules: readonly string[]): string {
  const folders = modules.map((module) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(module)?.[0])
  const packages = [...new Set(folders)].filter((folder) => folder !== undefined)
  const texts = packages.map((folder) => {
    const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
    const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
    const by = typeof author === 'string' ? author : (author?.name ?? 'those who contributed to it')
    const text = texts.length > 0 ? texts.join('\n\n') : `By ${by}; it comes without the text of its licence.`
    return `${name} ${version} (${license})\n\n${text}\n`
  })
  return texts.toSorted().join(`\n${'-'.repeat(80)}\n\n`)
}

const DIST = 'dist'

await build()
