const { appendFileSync, readFileSync } = require('node:fs');
const vscode = require('vscode');

const MODEL = {
  id: 'scripted-1',
  name: 'Scripted 1',
  family: 'scripted',
  version: '1',
  maxInputTokens: 100_000,
  maxOutputTokens: 32_000,
  capabilities: { toolCalling: true },
};

exports.activate = (context) => {
  const settings = vscode.workspace.getConfiguration('standIn');
  const provider = {
    provideLanguageModelChatInformation: () => [MODEL],
    provideTokenCount: (model, text) => Math.ceil(JSON.stringify(text).length / 4),
    provideLanguageModelChatResponse: async (model, messages, options, progress, token) => {
      const note = (said) => appendFileSync(settings.get('asked'), `${JSON.stringify(said)}\n`);
      note({ messages: messages.length, tools: options.tools.map(({ name }) => name) });
      const source = readFileSync(settings.get('answer'), 'utf8');
      if (source === 'refuse') {
        throw vscode.LanguageModelError.Blocked('the quota is used up');
      }
      if (source === 'wait') {
        await new Promise((resolve) => token.onCancellationRequested(resolve));
        note('cancelled');
        return;
      }
      progress.report(new vscode.LanguageModelTextPart('Here it is.'));
      const input = { summary: 'a first kernel', source };
      progress.report(new vscode.LanguageModelToolCallPart('call-1', 'submit_kernel', input));
    },
  };
  context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider('stand-in', provider));
};
