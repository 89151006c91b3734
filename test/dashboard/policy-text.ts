import type { Locator, Page } from 'playwright-core'

/** The text editor on the page Policy. */
export interface PolicyTextBox {
  readonly box: Locator
  /** Pastes it in place of the whole text. */
  fill(text: string): Promise<void>
  /** A short text: the editor shows the lines in sight. */
  read(): Promise<string>
}

export function policyText(page: Page): PolicyTextBox {
  // Until the editor is loaded, there is a plain field without its keys in the label.
  const box = page.getByRole('textbox', { name: /^Policy \(YAML\)\. Ctrl/ })
  return {
    box,
    async fill(text) {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      await box.focus()
      await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`)
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.press('ControlOrMeta+v')
    },
    async read() {
      await box.waitFor()
      return (await box.locator('.cm-line').allTextContents()).join('\n')
    },
  }
}
