import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

/**
 * For `npm run build`: the program in some files in the place of two thousand. To find, open and link each of them, its own
 * and those of packages, was half of the time that a proxy took until it listened. It is CommonJS, as an import of one of Node's
 * own modules asks for all that is in it, and so has Node load parts of itself that nobody needs.
 *
 * What starts another program, or reads a file, by where it stands itself, finds it: all are in one folder of dist/, as they
 * are in folders of src/.
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
    // With machine code in it; what pg looks for; what only a checkout has.
    external: ['better-sqlite3', 'pg-native', '@ai-sdk/mcp'],
    // Of packages; and that `help` is asked for by who has it loaded.
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

/** Of the packages that modules are of, as those ask for who passes them on. */
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
