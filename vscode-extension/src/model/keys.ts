import * as vscode from 'vscode';

const SECRET = 'cutesmith.anthropicKey';
const VARIABLE = 'ANTHROPIC_API_KEY';

/** The user's Anthropic key, in the editor's secret storage; it reaches the server in its environment and nothing else. */
export class Keys {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  /** True when a key was stored. */
  async ask(): Promise<boolean> {
    const key = await vscode.window.showInputBox({
      title: 'Anthropic API key',
      prompt: 'Kept in this editor’s secret storage. Nothing is sent anywhere before you agree to it for a workspace.',
      password: true,
      ignoreFocusOut: true,
      validateInput: (value) => (/^\s*[\x21-\x7e]*\s*$/.test(value) ? undefined : 'A key is one word without spaces.'),
    });
    if (key === undefined || key.trim() === '') {
      return false;
    }
    await this.secrets.store(SECRET, key.trim());
    return true;
  }

  async forget(): Promise<void> {
    await this.secrets.delete(SECRET);
  }

  /** The environment of a server: with the stored key in a workspace that is trusted; else as the editor's own is. */
  async environment(): Promise<NodeJS.ProcessEnv> {
    const key = vscode.workspace.isTrusted ? await this.secrets.get(SECRET) : undefined;
    return key === undefined ? process.env : { ...process.env, [VARIABLE]: key };
  }
}
