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
    provideLanguageModelChatResponse: (model, messages, options, progress) => {
      const asked = { messages: messages.length, tools: options.tools.map(({ name }) => name) };
      appendFileSync(settings.get('asked'), `${JSON.stringify(asked)}\n`);
      const input = { summary: 'a first kernel', source: readFileSync(settings.get('answer'), 'utf8') };
      progress.report(new vscode.LanguageModelTextPart('Here it is.'));
      progress.report(new vscode.LanguageModelToolCallPart('call-1', 'submit_kernel', input));
    },
  };
  context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider('stand-in', provider));
};
